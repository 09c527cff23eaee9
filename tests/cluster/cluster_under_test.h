#ifndef TESTS_CLUSTER_CLUSTER_UNDER_TEST_H_
#define TESTS_CLUSTER_CLUSTER_UNDER_TEST_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/port_reservation.h"
#include "tests/cluster/faulty_link.h"
#include "tests/cluster/process_under_test.h"

namespace muster {

// A cluster of Muster's executables, each started separately with its TF_CONFIG
// and without a launcher. They train on the handwritten digits in
// examples/data.
//
// Ports are reserved for the lifetime of this object, so a task can be killed
// and restarted at the same address. Not thread-safe.
class ClusterUnderTest {
 public:
  static constexpr TaskId kChief = {TaskType::kChief, 0};

  // Creates the cluster without starting processes. `name` becomes part of the
  // run directory. With parameter servers the cluster has a chief; without
  // them, the workers train in sync.
  static absl::StatusOr<std::unique_ptr<ClusterUnderTest>> Create(
      const std::string& name, int worker_count, int ps_count);

  // Starts `task`, replacing its previous process if there is one. Tasks that
  // train do so for set_epochs() epochs. `flags` are appended to the command
  // line and `environment` is added to the environment; they override the
  // defaults. The result is owned by this object.
  absl::StatusOr<ProcessUnderTest*> Start(
      TaskId task, std::vector<std::string> flags = {},
      ProcessUnderTest::Environment environment = {});

  // Starts all tasks that have not been started: servers, workers, and then the
  // chief.
  absl::Status StartAll(const std::vector<std::string>& flags = {});

  ProcessUnderTest& process(TaskId task) { return *processes_.at(task); }
  // Returns the process of `task` and forgets it, so that Start() does not end
  // it.
  std::unique_ptr<ProcessUnderTest> Release(TaskId task) {
    return std::move(processes_.extract(task).mapped());
  }

  // The cluster in TF_CONFIG.
  const ClusterSpec& cluster() const { return cluster_; }
  std::string TfConfig(TaskId task) const;

  // Inserts a link in front of `task`, to which the other tasks then connect.
  // Call it before any task is started. The result is owned by this object.
  absl::StatusOr<FaultyLink*> Link(TaskId task);

  struct Host {
    std::string address;              // Where other tasks reach it.
    std::vector<std::string> prefix;  // Start of a command on the host.
  };
  // Runs each task on the host with the same position as in
  // cluster().Members(). Call it before any task is started.
  absl::Status Place(const std::vector<Host>& hosts);

  // Puts these words before the command of `task`.
  void set_prefix(TaskId task, std::vector<std::string> prefix) {
    prefixes_[task] = std::move(prefix);
  }

  // Runs this program in every task. It must be in the data of the test.
  void set_program(std::string program) { program_ = std::move(program); }

  // Runs this executable in the workers instead of Muster's.
  void set_worker(std::string executable) { worker_ = std::move(executable); }

  // The job of a cluster of workers, relative to the root of the source tree.
  void set_job(std::string job) { job_ = std::move(job); }

  // Lets servers keep logs, so that one that is killed and started again
  // continues where it stood. Otherwise its loss rolls training back.
  void keep_server_logs() { keeps_server_logs_ = true; }

  // The default of 30 epochs takes about a second.
  void set_epochs(int epochs) { epochs_ = epochs; }

  const std::string& run_dir() const { return run_dir_; }
  // The chief rejects a directory with the results of an earlier run.
  void set_run_dir(std::string run_dir) { run_dir_ = std::move(run_dir); }

 private:
  ClusterUnderTest() = default;

  // Returns true if `task` gets a job file; other tasks receive their work.
  bool Trains(TaskId task) const;
  // The path of the executable in the runfiles of a test.
  std::string ExecutableOf(TaskType type) const;

  std::string run_dir_;
  std::string program_;  // If empty, Muster's executables.
  std::string worker_ = "worker/worker";
  std::string job_ = "examples/digits/digits.job";
  int epochs_ = 30;
  bool keeps_server_logs_ = false;
  std::vector<std::unique_ptr<PortReservation>> reservations_;
  std::map<TaskType, std::vector<std::string>> addresses_;
  ClusterSpec cluster_;
  std::map<TaskId, std::string> bind_addresses_;  // Of tasks behind a link.
  bool is_placed_ = false;                        // True after Place().
  std::map<TaskId, std::vector<std::string>> prefixes_;
  std::vector<std::unique_ptr<FaultyLink>> links_;
  std::map<TaskId, std::unique_ptr<ProcessUnderTest>> processes_;
};

// Returns TF_CONFIG for `task` in `cluster`.
std::string MakeTfConfig(const ClusterSpec& cluster, TaskId task);

}  // namespace muster

#endif  // TESTS_CLUSTER_CLUSTER_UNDER_TEST_H_
