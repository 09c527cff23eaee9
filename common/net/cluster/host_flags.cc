#include "common/net/cluster/host_flags.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

std::vector<std::string> SplitHosts(const std::string& hosts) {
  std::vector<std::string> addresses;
  if (hosts.empty()) return addresses;
  for (absl::string_view address : absl::StrSplit(hosts, ',')) {
    addresses.emplace_back(absl::StripAsciiWhitespace(address));
  }
  return addresses;
}

absl::StatusOr<ClusterConfig> Parse(const HostFlags& flags) {
  ClusterConfig config;
  ASSIGN_OR_RETURN(config.cluster,
                   ClusterSpec::FromLists(
                       {{TaskType::kChief, SplitHosts(flags.chief_hosts)},
                        {TaskType::kWorker, SplitHosts(flags.worker_hosts)},
                        {TaskType::kPs, SplitHosts(flags.ps_hosts)}}));
  if (flags.job_name.empty()) {
    return absl::InvalidArgumentError(
        "the role of this task is not set; add --job_name=worker, ps or chief");
  }
  ASSIGN_OR_RETURN(config.task.type, ParseTaskType(flags.job_name));
  if (!flags.task_index.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the index of this ", flags.job_name,
                     " is not set; add --task_index, counted from 0"));
  }
  config.task.index = *flags.task_index;
  RETURN_IF_ERROR(CheckTaskIsInCluster(config));
  return config;
}

}  // namespace

bool HostFlags::any() const {
  return !job_name.empty() || task_index.has_value() || !chief_hosts.empty() ||
         !worker_hosts.empty() || !ps_hosts.empty();
}

absl::StatusOr<ClusterConfig> ParseHostFlags(const HostFlags& flags) {
  constexpr absl::string_view kSource =
      "--job_name, --task_index and the lists of hosts";
  absl::StatusOr<ClusterConfig> config = Parse(flags);
  if (!config.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kSource, ": ", config.status().message()));
  }
  config->source = std::string(kSource);
  return config;
}

}  // namespace muster
