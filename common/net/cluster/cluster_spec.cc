#include "common/net/cluster/cluster_spec.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/address.h"

namespace muster {
namespace {

std::string Entry(TaskType type, int index) {
  return absl::StrCat("cluster.", TaskTypeName(type), "[", index, "]");
}

absl::Status CheckIndices(TaskType type, const JobSpec& job) {
  const int first = job.addresses.begin()->first;
  if (first < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.", TaskTypeName(type), " has a task ", first,
                     "; tasks are numbered from 0"));
  }
  const bool comes_once =
      type == TaskType::kChief || type == TaskType::kEvaluator;
  if (comes_once && job.addresses.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cluster.", TaskTypeName(type), " has ", job.addresses.size(),
        " tasks but can have only one ", TaskTypeName(type),
        type == TaskType::kChief ? "; move the others to \"worker\""
                                 : "; keep one of them"));
  }
  if (comes_once && first != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.", TaskTypeName(type), " has a task ", first,
                     "; its only task has index 0"));
  }
  return absl::OkStatus();
}

// Parses and normalizes addresses, so that equal clusters compare equal.
absl::Status NormalizeAddresses(TaskType type, JobSpec& job) {
  for (auto& [index, address] : job.addresses) {
    absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Entry(type, index), ": ", parsed.status().message()));
    }
    if (IsWildcardHost(parsed->host)) {
      return absl::InvalidArgumentError(absl::StrCat(
          Entry(type, index), " is \"", parsed->ToString(),
          "\", which is not an address to connect to; use a name or address by "
          "which the other tasks can reach this host"));
    }
    address = parsed->ToString();
  }
  return absl::OkStatus();
}

// Returns `address` with "localhost" replaced by 127.0.0.1.
std::string PlaceOf(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok() || parsed->host != "localhost") return address;
  return HostPort{"127.0.0.1", parsed->port}.ToString();
}

absl::Status CheckNoAddressTwice(const std::map<TaskType, JobSpec>& jobs) {
  std::map<std::string, std::string> entry_of_address;
  for (const auto& [type, job] : jobs) {
    // No task connects to an evaluator, so its address cannot conflict.
    if (type == TaskType::kEvaluator) continue;
    for (const auto& [index, address] : job.addresses) {
      const auto [it, fresh] =
          entry_of_address.emplace(PlaceOf(address), Entry(type, index));
      if (fresh) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(it->second, " and ", Entry(type, index), " are both \"",
                       address, "\"; each task needs a separate address"));
    }
  }
  return absl::OkStatus();
}

// localhost is a different machine on every host. If a cluster mixes it with
// other hosts, tasks on other hosts connect to the wrong machine and wait.
absl::Status CheckNoLoopbackBesideOthers(
    const std::map<TaskType, JobSpec>& jobs) {
  std::optional<std::string> loopback;
  std::optional<std::string> routable;
  for (const auto& [type, job] : jobs) {
    if (type == TaskType::kEvaluator) continue;
    for (const auto& [index, address] : job.addresses) {
      const bool is_loopback = IsLoopbackHost(ParseHostPort(address)->host);
      (is_loopback ? loopback : routable) =
          absl::StrCat(Entry(type, index), " is \"", address, "\"");
    }
  }
  if (!loopback.has_value() || !routable.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(*loopback, " and ", *routable,
                   "; localhost is a different machine on every host, so use "
                   "only hosts that every task can reach, or only localhost"));
}

}  // namespace

absl::StatusOr<ClusterSpec> ClusterSpec::Create(
    std::map<TaskType, JobSpec> jobs) {
  std::erase_if(
      jobs, [](const auto& entry) { return entry.second.addresses.empty(); });
  for (auto& [type, job] : jobs) {
    RETURN_IF_ERROR(CheckIndices(type, job));
    RETURN_IF_ERROR(NormalizeAddresses(type, job));
  }
  RETURN_IF_ERROR(CheckNoAddressTwice(jobs));
  RETURN_IF_ERROR(CheckNoLoopbackBesideOthers(jobs));
  return ClusterSpec(std::move(jobs));
}

absl::StatusOr<ClusterSpec> ClusterSpec::FromLists(
    const std::map<TaskType, std::vector<std::string>>& lists) {
  std::map<TaskType, JobSpec> jobs;
  for (const auto& [type, addresses] : lists) {
    int index = 0;
    for (const std::string& address : addresses) {
      jobs[type].addresses.emplace(index++, address);
    }
  }
  return Create(std::move(jobs));
}

bool ClusterSpec::Has(TaskId task) const {
  const auto it = jobs_.find(task.type);
  return it != jobs_.end() && it->second.addresses.contains(task.index);
}

int ClusterSpec::task_count(TaskType type) const {
  const auto it = jobs_.find(type);
  return it == jobs_.end() ? 0 : static_cast<int>(it->second.addresses.size());
}

bool ClusterSpec::sparse(TaskType type) const {
  const auto it = jobs_.find(type);
  return it != jobs_.end() && it->second.sparse;
}

std::vector<TaskId> ClusterSpec::Tasks(TaskType type) const {
  std::vector<TaskId> tasks;
  if (const auto it = jobs_.find(type); it != jobs_.end()) {
    for (const auto& [index, address] : it->second.addresses) {
      tasks.push_back({type, index});
    }
  }
  return tasks;
}

std::vector<TaskId> ClusterSpec::Members() const {
  std::vector<TaskId> members;
  for (TaskType type : {TaskType::kChief, TaskType::kWorker, TaskType::kPs}) {
    for (const TaskId& task : Tasks(type)) members.push_back(task);
  }
  return members;
}

absl::StatusOr<std::string> ClusterSpec::Address(TaskId task) const {
  if (Has(task)) return jobs_.at(task.type).addresses.at(task.index);
  return absl::NotFoundError(
      absl::StrCat(task.ToString(), " is not in the cluster ", ToString()));
}

bool ClusterSpec::IsChief(TaskId task) const {
  switch (task.type) {
    case TaskType::kChief:
    case TaskType::kEvaluator:
      return true;
    case TaskType::kWorker:
      return task.index == 0 && !Has(TaskType::kChief);
    case TaskType::kPs:
      return false;
  }
  return false;
}

absl::StatusOr<int> ClusterSpec::WorkerCount(TaskType asker) const {
  if (asker == TaskType::kPs) {
    return absl::InvalidArgumentError(
        "a parameter server consumes no input, so it has no worker count");
  }
  if (asker == TaskType::kEvaluator) return task_count(TaskType::kEvaluator);
  return task_count(TaskType::kChief) + task_count(TaskType::kWorker);
}

absl::StatusOr<int> ClusterSpec::IdInCluster(TaskId task) const {
  if (task.type == TaskType::kPs) {
    return absl::InvalidArgumentError(absl::StrCat(
        task.ToString(), " consumes no input, so it has no input pipeline id"));
  }
  if (task.type != TaskType::kWorker) return task.index;
  return task.index + task_count(TaskType::kChief);
}

std::string ClusterSpec::ToString() const {
  return absl::StrCat(
      "{",
      absl::StrJoin(jobs_, ",",
                    [](std::string* out, const auto& entry) {
                      absl::StrAppend(out, "\"", TaskTypeName(entry.first),
                                      "\":", muster::ToString(entry.second));
                    }),
      "}");
}

std::string ToString(const JobSpec& job) {
  std::string text = job.sparse ? "{" : "[";
  const char* separator = "";
  for (const auto& [index, address] : job.addresses) {
    absl::StrAppend(&text, separator);
    if (job.sparse) absl::StrAppend(&text, "\"", index, "\":");
    absl::StrAppend(&text, "\"", address, "\"");
    separator = ",";
  }
  return absl::StrCat(text, job.sparse ? "}" : "]");
}

}  // namespace muster
