#include "common/net/cluster/cluster_differences.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

// For longer lists, only the first difference is reported.
constexpr size_t kListedAddressesMax = 6;

const JobSpec& JobOf(const ClusterSpec& cluster, TaskType type) {
  static const JobSpec* const kNone = new JobSpec;
  const auto it = cluster.jobs().find(type);
  return it == cluster.jobs().end() ? *kNone : it->second;
}

// Returns "" or "ps is [...] there and [...] here".
std::string DescribeSharedTasks(TaskType type, const JobSpec& there,
                                const JobSpec& here) {
  for (const auto& [index, address] : here.addresses) {
    const auto it = there.addresses.find(index);
    if (it == there.addresses.end() || it->second == address) continue;
    return absl::StrCat(TaskTypeName(type), " ", index, " is \"", it->second,
                        "\" there and \"", address, "\" here");
  }
  return "";
}

std::string DescribeJob(TaskType type, const JobSpec& there,
                        const JobSpec& here) {
  if (there.sparse || here.sparse) {
    return DescribeSharedTasks(type, there, here);
  }
  if (there.addresses == here.addresses) return "";
  if (there.addresses.size() <= kListedAddressesMax &&
      here.addresses.size() <= kListedAddressesMax) {
    return absl::StrCat(TaskTypeName(type), " is ", ToString(there),
                        " there and ", ToString(here), " here");
  }
  if (there.addresses.size() != here.addresses.size()) {
    return absl::StrCat(TaskTypeName(type), " has ", there.addresses.size(),
                        " tasks there and ", here.addresses.size(), " here");
  }
  return DescribeSharedTasks(type, there, here);
}

}  // namespace

std::string DescribeDifferences(const ClusterSpec& there,
                                const ClusterSpec& here) {
  std::vector<std::string> differences;
  for (TaskType type : {TaskType::kChief, TaskType::kWorker, TaskType::kPs}) {
    if (type == TaskType::kChief && here.Has(TaskType::kPs) &&
        there.Has(TaskType::kPs) && here.Has(type) != there.Has(type)) {
      continue;
    }
    std::string difference =
        DescribeJob(type, JobOf(there, type), JobOf(here, type));
    if (!difference.empty()) differences.push_back(std::move(difference));
  }
  return absl::StrJoin(differences, "; ");
}

absl::Status CheckClustersAgree(TaskId peer, const ClusterSpec& there,
                                const ClusterSpec& here) {
  const std::string differences = DescribeDifferences(there, here);
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      peer.ToString(), " and this task disagree about the cluster: ",
      differences, "; set the same \"cluster\" in both TF_CONFIGs"));
}

}  // namespace muster
