#include "tests/cluster/cluster_under_test.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Where the build puts what a test names as its data.
std::string ExecutableFor(TaskType type) {
  switch (type) {
    case TaskType::kPs:
      return "ps/ps";
    case TaskType::kWorker:
      return "worker/worker";
    case TaskType::kChief:
    case TaskType::kEvaluator:
      return "coordinator/coordinator";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterUnderTest>> ClusterUnderTest::Create(
    const std::string& name, int worker_count, int ps_count) {
  std::unique_ptr<ClusterUnderTest> result(new ClusterUnderTest);
  result->run_dir_ = absl::StrCat(testing::TempDir(), "/", name);
  std::map<TaskType, std::vector<std::string>> lists;
  const int chief_count = ps_count > 0 ? 1 : 0;
  for (const auto& [type, count] : {std::pair(TaskType::kChief, chief_count),
                                    std::pair(TaskType::kWorker, worker_count),
                                    std::pair(TaskType::kPs, ps_count)}) {
    for (int i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(result->reservations_.emplace_back(),
                       PortReservation::Create());
      lists[type].push_back(
          absl::StrCat("localhost:", result->reservations_.back()->port()));
    }
  }
  ASSIGN_OR_RETURN(result->cluster_, ClusterSpec::FromLists(lists));
  return result;
}

absl::StatusOr<ProcessUnderTest*> ClusterUnderTest::Start(
    TaskId task, std::vector<std::string> flags,
    ProcessUnderTest::Environment environment) {
  std::vector<std::string> arguments = {
      program_.empty() ? ExecutableFor(task.type) : program_,
      absl::StrCat("--run_dir=", run_dir_), "--threads=1"};
  if (program_.empty() && Trains(task)) {
    arguments.push_back(absl::StrCat("--job=", job_));
    arguments.push_back("--set");
    arguments.push_back(absl::StrCat("epochs=", epochs_));
  }
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  environment["TF_CONFIG"] = TfConfig(task);
  processes_.erase(task);
  ASSIGN_OR_RETURN(processes_[task],
                   ProcessUnderTest::Start(arguments, environment));
  return processes_[task].get();
}

bool ClusterUnderTest::Trains(TaskId task) const {
  return cluster_.Has(TaskType::kPs) ? task.type == TaskType::kChief
                                     : task.type == TaskType::kWorker;
}

absl::Status ClusterUnderTest::StartAll(const std::vector<std::string>& flags) {
  std::vector<TaskId> tasks = cluster_.Members();
  // Members begin with the chief.
  for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
    if (processes_.contains(*task)) continue;
    RETURN_IF_ERROR(Start(*task, flags).status());
  }
  return absl::OkStatus();
}

std::string ClusterUnderTest::TfConfig(TaskId task) const {
  return MakeTfConfig(cluster_, task);
}

std::string MakeTfConfig(const ClusterSpec& cluster, TaskId task) {
  return absl::StrCat(R"({"cluster":)", cluster.ToString(),
                      R"(,"task":{"type":")", TaskTypeName(task.type),
                      R"(","index":)", task.index, "}}");
}

}  // namespace muster
