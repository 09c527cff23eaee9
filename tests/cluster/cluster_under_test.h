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

// A cluster of Muster's own executables, each started by hand with its
// TF_CONFIG, as people do in several terminals. They train the handwritten
// digits that come with the project.
//
// Ports are reserved for as long as this lives, so a task can be killed and
// started again in its place. Not thread-safe.
class ClusterUnderTest {
 public:
  static constexpr TaskId kChief = {TaskType::kChief, 0};

  // Starts nothing yet. `name` is for the run directory. With parameter servers
  // there is a chief; without, the workers train in sync.
  static absl::StatusOr<std::unique_ptr<ClusterUnderTest>> Create(
      const std::string& name, int worker_count, int ps_count);

  // Starts `task`, in the place of the process that was there before, if any.
  // Whoever trains does so for `epochs()`. `flags` are added to the command
  // line, and `environment` to the environment; what they say again replaces
  // what stood there. The result is this object's.
  absl::StatusOr<ProcessUnderTest*> Start(
      TaskId task, std::vector<std::string> flags = {},
      ProcessUnderTest::Environment environment = {});

  // All that have not been started: workers, servers, and the chief last.
  absl::Status StartAll(const std::vector<std::string>& flags = {});

  ProcessUnderTest& process(TaskId task) { return *processes_.at(task); }

  // The cluster that a task is told.
  const ClusterSpec& cluster() const { return cluster_; }
  std::string TfConfig(TaskId task) const;

  // Puts a link before `task`, which the others then dial. Before anything is
  // started. The result is this object's.
  absl::StatusOr<FaultyLink*> Link(TaskId task);

  struct Host {
    std::string address;              // Where the others reach the task.
    std::vector<std::string> prefix;  // What a command on the host begins with.
  };
  // Runs each task on the host at its place among cluster().Members(). Before
  // anything is started.
  absl::Status Place(const std::vector<Host>& hosts);

  // Every task runs this program, which is data of the test, instead.
  void set_program(std::string program) { program_ = std::move(program); }

  // What a cluster of workers trains, relative to the root of the tree.
  void set_job(std::string job) { job_ = std::move(job); }

  // 30 epochs take about a second.
  void set_epochs(int epochs) { epochs_ = epochs; }

  const std::string& run_dir() const { return run_dir_; }
  // The chief refuses a folder that holds the results of an earlier run.
  void set_run_dir(std::string run_dir) { run_dir_ = std::move(run_dir); }

 private:
  ClusterUnderTest() = default;

  // Whether `task` is given a job, and not sent its work.
  bool Trains(TaskId task) const;

  std::string run_dir_;
  std::string program_;  // Empty: Muster's own executables.
  std::string job_ = "examples/digits/digits.job";
  int epochs_ = 30;
  std::vector<std::unique_ptr<PortReservation>> reservations_;
  std::map<TaskType, std::vector<std::string>> addresses_;
  ClusterSpec cluster_;
  std::map<TaskId, std::string> bind_addresses_;  // Of tasks behind a link.
  std::map<TaskId, std::vector<std::string>> prefixes_;  // Of placed tasks.
  std::vector<std::unique_ptr<FaultyLink>> links_;
  std::map<TaskId, std::unique_ptr<ProcessUnderTest>> processes_;
};

// TF_CONFIG for `task` in `cluster`.
std::string MakeTfConfig(const ClusterSpec& cluster, TaskId task);

}  // namespace muster

#endif  // TESTS_CLUSTER_CLUSTER_UNDER_TEST_H_
