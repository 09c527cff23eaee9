#include "tests/cluster/cluster_under_test.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/address.h"
#include "gtest/gtest.h"

namespace muster {

absl::StatusOr<std::unique_ptr<ClusterUnderTest>> ClusterUnderTest::Create(
    const std::string& name, int worker_count, int ps_count) {
  std::unique_ptr<ClusterUnderTest> result(new ClusterUnderTest);
  result->run_dir_ = absl::StrCat(testing::TempDir(), "/", name);
  const int chief_count = ps_count > 0 ? 1 : 0;
  for (const auto& [type, count] : {std::pair(TaskType::kChief, chief_count),
                                    std::pair(TaskType::kWorker, worker_count),
                                    std::pair(TaskType::kPs, ps_count)}) {
    for (int i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(result->reservations_.emplace_back(),
                       PortReservation::Create());
      result->addresses_[type].push_back(
          absl::StrCat("localhost:", result->reservations_.back()->port()));
    }
  }
  ASSIGN_OR_RETURN(result->cluster_,
                   ClusterSpec::FromLists(result->addresses_));
  return result;
}

absl::StatusOr<FaultyLink*> ClusterUnderTest::Link(TaskId task) {
  std::string& address = addresses_[task.type][task.index];
  ASSIGN_OR_RETURN(const HostPort bound, ParseHostPort(address));
  ASSIGN_OR_RETURN(links_.emplace_back(), FaultyLink::Create(bound.port));
  bind_addresses_[task] = absl::StrCat("127.0.0.1:", bound.port);
  address = absl::StrCat("127.0.0.1:", links_.back()->port());
  ASSIGN_OR_RETURN(cluster_, ClusterSpec::FromLists(addresses_));
  return links_.back().get();
}

absl::Status ClusterUnderTest::Place(const std::vector<Host>& hosts) {
  const std::vector<TaskId> tasks = cluster_.Members();
  MUSTER_CHECK(hosts.size() >= tasks.size());
  is_placed_ = true;
  for (size_t i = 0; i < tasks.size(); ++i) {
    addresses_[tasks[i].type][tasks[i].index] = hosts[i].address;
    prefixes_[tasks[i]] = hosts[i].prefix;
  }
  ASSIGN_OR_RETURN(cluster_, ClusterSpec::FromLists(addresses_));
  return absl::OkStatus();
}

absl::StatusOr<ProcessUnderTest*> ClusterUnderTest::Start(
    TaskId task, std::vector<std::string> flags,
    ProcessUnderTest::Environment environment) {
  std::vector<std::string> arguments;
  if (const auto prefix = prefixes_.find(task); prefix != prefixes_.end()) {
    arguments = prefix->second;
  }
  arguments.push_back(ExecutableOf(task.type));
  arguments.push_back(absl::StrCat("--run_dir=", run_dir_));
  arguments.push_back("--threads=1");
  arguments.push_back(
      absl::StrCat("--server_log=", keeps_server_logs_ ? "auto" : "off"));
  // The network exists only for this test, so encryption is not needed.
  if (is_placed_) {
    arguments.insert(arguments.end(), {"--insecure", "--data_root=/"});
  }
  if (program_.empty() && Trains(task)) {
    arguments.push_back(absl::StrCat("--job=", job_));
    arguments.push_back("--set");
    arguments.push_back(absl::StrCat("epochs=", epochs_));
  }
  if (const auto bind = bind_addresses_.find(task);
      bind != bind_addresses_.end()) {
    arguments.push_back(absl::StrCat("--bind_address=", bind->second));
  }
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  environment["TF_CONFIG"] = TfConfig(task);
  processes_.erase(task);
  ASSIGN_OR_RETURN(processes_[task],
                   ProcessUnderTest::Start(arguments, environment));
  return processes_[task].get();
}

std::string ClusterUnderTest::ExecutableOf(TaskType type) const {
  if (!program_.empty()) return program_;
  switch (type) {
    case TaskType::kPs:
      return "ps/ps";
    case TaskType::kWorker:
      return worker_;
    case TaskType::kChief:
    case TaskType::kEvaluator:
      return "coordinator/coordinator";
  }
  return "";
}

bool ClusterUnderTest::Trains(TaskId task) const {
  return cluster_.Has(TaskType::kPs) ? task.type == TaskType::kChief
                                     : task.type == TaskType::kWorker;
}

absl::Status ClusterUnderTest::StartAll(const std::vector<std::string>& flags) {
  std::vector<TaskId> tasks = cluster_.Members();
  // In the reverse of the order of the map, which begins with the chief.
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
