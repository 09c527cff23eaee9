#ifndef TESTS_SIMULATION_CLUSTER_SIMULATED_CLUSTER_H_
#define TESTS_SIMULATION_CLUSTER_SIMULATED_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/rpc/identity.h"
#include "tests/simulation/network/simulated_network.h"
#include "tests/simulation/scheduler/scheduler.h"

namespace muster::sim {

struct SimulatedClusterOptions {
  int worker_count = 2;
  int server_count = 2;
  // Of workers and parameter servers, as --coordinator_timeout.
  absl::Duration coordinator_timeout = absl::Seconds(10);
};

// A coordinator, workers and parameter servers. Each process is a host of the
// scheduler and consists of the objects that its main program makes. Flags,
// signals and status pages are left out, and shared memory is off. Each task
// has a machine of its own. A restarted task is a new process on the machine.
// As launch does, restarts workers and servers that end with kRestartMe.
//
// Thread-safe. Used by threads of the simulation.
class SimulatedCluster {
 public:
  // What the coordinator's process runs. It gets its identity.
  using CoordinatorProgram = std::function<absl::Status(const TaskIdentity&)>;

  // All arguments are borrowed and live as long as the simulation. Starts no
  // task.
  SimulatedCluster(Scheduler* scheduler, SimulatedNetwork* network,
                   const SimulatedClusterOptions& options,
                   CoordinatorProgram coordinator_program);

  static ClusterSpec SpecOf(const SimulatedClusterOptions& options);
  const ClusterSpec& spec() const { return spec_; }
  // Workers and parameter servers.
  const std::vector<TaskId>& served_tasks() const { return served_tasks_; }
  static TaskId coordinator() { return {TaskType::kChief, 0}; }
  std::string MachineOf(TaskId task) const;

  // Starts a process of the task, unless one is running.
  void Start(TaskId task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the process of the task as SIGKILL does. Returns false if it has none.
  bool Kill(TaskId task) ABSL_LOCKS_EXCLUDED(mutex_);
  // As SIGSTOP and SIGCONT. They have no effect on a task without a process.
  void Stop(TaskId task) ABSL_LOCKS_EXCLUDED(mutex_);
  void Resume(TaskId task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves the wall clock of the task's machine.
  void MoveClock(TaskId task, absl::Duration by) ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts another coordinator while the present one is stopped, as a cluster
  // manager does that takes the present one for dead. Returns false if it has
  // ended.
  bool ReplaceCoordinator() ABSL_LOCKS_EXCLUDED(mutex_);
  // Resumes the coordinators that were replaced.
  void ResumeReplaced() ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the process of the task was killed or has ended, and is not
  // restarted.
  bool HasEnded(TaskId task) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until the process of the task has ended by itself and is not
  // restarted. Returns its status, or kDeadlineExceeded at `deadline` of
  // Clock::Real().
  absl::Status AwaitEnd(TaskId task, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // True if a parameter server was started a second time.
  bool HasReplacedServers() const ABSL_LOCKS_EXCLUDED(mutex_);
  // How many pushes the parameter servers have recognized as repeated.
  int64_t RepeatedPushCount() const;

 private:
  struct Process {
    HostId host = 0;
    bool is_running = false;
    bool is_stopped = false;
    bool is_restarting = false;
    absl::Status status;  // Once it has ended by itself.
  };

  absl::Status RunProcess(TaskId task, const TaskIdentity& identity);
  absl::Status RunWorker(TaskId task, const TaskIdentity& identity);
  absl::Status RunServer(TaskId task, const TaskIdentity& identity);
  void OnProcessEnd(TaskId task, HostId host, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);

  Scheduler* const scheduler_;
  SimulatedNetwork* const network_;
  const SimulatedClusterOptions options_;
  const CoordinatorProgram coordinator_program_;
  const ClusterSpec spec_;
  const std::vector<TaskId> served_tasks_;

  mutable absl::Mutex mutex_;
  std::map<TaskId, Process> processes_ ABSL_GUARDED_BY(mutex_);
  std::map<TaskId, absl::Duration> clock_offsets_ ABSL_GUARDED_BY(mutex_);
  // Stopped coordinators that were replaced.
  std::vector<HostId> replaced_ ABSL_GUARDED_BY(mutex_);
  int server_start_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_CLUSTER_SIMULATED_CLUSTER_H_
