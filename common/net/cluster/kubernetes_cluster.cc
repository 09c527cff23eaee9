#include "common/net/cluster/kubernetes_cluster.h"

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/address.h"

namespace muster {
namespace {

using internal::Invalid;

constexpr char kCompletionIndex[] = "JOB_COMPLETION_INDEX";

// The parts of a host name NAME-ROLE-INDEX, or NAME-ROLE-0-INDEX in a JobSet.
struct PodName {
  std::string name;
  TaskId task;
  std::string job;  // "0-" in a JobSet.
};

std::optional<int> ParseIndex(absl::string_view text) {
  int index = 0;
  if (text.empty() || !absl::ascii_isdigit(text.front()) ||
      !absl::SimpleAtoi(text, &index) || index >= kClusterTasksMax) {
    return std::nullopt;
  }
  return index;
}

// Removes the last "-INDEX" of `host`, if it has one.
std::optional<int> ConsumeIndex(absl::string_view* host) {
  const size_t dash = host->rfind('-');
  if (dash == absl::string_view::npos) return std::nullopt;
  const std::optional<int> index = ParseIndex(host->substr(dash + 1));
  if (index.has_value()) *host = host->substr(0, dash);
  return index;
}

absl::StatusOr<int> IndexOf(absl::string_view host_name,
                            absl::string_view* rest,
                            EnvironmentLookup environment) {
  const std::optional<int> ordinal = ConsumeIndex(rest);
  const char* const completion = environment(kCompletionIndex);
  if (completion == nullptr && ordinal.has_value()) return *ordinal;
  if (completion == nullptr) {
    return Invalid("the host name is \"", host_name,
                   "\"; expected NAME-ROLE-INDEX, as a StatefulSet or an "
                   "Indexed Job called NAME-ROLE gives it, or ",
                   kCompletionIndex);
  }
  const std::optional<int> index = ParseIndex(completion);
  if (!index.has_value()) {
    return Invalid(kCompletionIndex, " is \"", absl::CHexEscape(completion),
                   "\"; expected the index of this pod");
  }
  if (ordinal.has_value() && *ordinal != *index) {
    return Invalid(kCompletionIndex, " is ", *index,
                   ", but the host name is \"", host_name,
                   "\"; expected one that ends with -", *index);
  }
  return *index;
}

absl::StatusOr<PodName> ParsePodName(absl::string_view host,
                                     EnvironmentLookup environment) {
  // With setHostnameAsFQDN the host name includes the domain.
  const absl::string_view host_name = host.substr(0, host.find('.'));
  absl::string_view rest = host_name;
  PodName pod;
  ASSIGN_OR_RETURN(pod.task.index, IndexOf(host_name, &rest, environment));
  // In a JobSet the name also has the index of the Job within the role. Each
  // role has one Job, so this index must be 0.
  if (const std::optional<int> job = ConsumeIndex(&rest); job.has_value()) {
    if (*job != 0) {
      return Invalid("the host name is \"", host_name,
                     "\"; expected NAME-ROLE-0-INDEX in a JobSet: replicas: 1, "
                     "and the tasks of a role as parallelism and completions");
    }
    pod.job = "0-";
  }
  const size_t dash = rest.rfind('-');
  const bool has_name = dash != absl::string_view::npos;
  const absl::StatusOr<TaskType> type =
      ParseTaskType(has_name ? rest.substr(dash + 1) : rest);
  if (!type.ok() || !has_name || dash == 0) {
    return Invalid("the host name is \"", host_name,
                   "\"; expected NAME-ROLE-INDEX with the role chief, worker, "
                   "ps or evaluator, as in demo-worker-0");
  }
  pod.name = std::string(rest.substr(0, dash));
  pod.task.type = *type;
  return pod;
}

absl::StatusOr<ClusterConfig> ResolvePods(const KubernetesOptions& options,
                                          EnvironmentLookup environment) {
  if (options.roles.empty()) {
    return Invalid(
        "--cluster_tasks is not set; expected the number of pods of each "
        "role, as in chief=1,ps=1,worker=2");
  }
  ASSIGN_OR_RETURN(const PodName pod,
                   ParsePodName(options.host_name, environment));
  const std::string& service =
      options.service.empty() ? pod.name : options.service;
  ClusterConfig config;
  config.task = pod.task;
  std::map<TaskType, std::vector<std::string>> lists;
  for (const RoleCount& role : options.roles) {
    for (int index = 0; index < role.count; ++index) {
      const HostPort address = {
          absl::StrCat(pod.name, "-", TaskTypeName(role.type), "-", pod.job,
                       index, ".", service),
          options.port};
      lists[role.type].push_back(address.ToString());
    }
  }
  ASSIGN_OR_RETURN(config.cluster, ClusterSpec::FromLists(lists));
  if (!config.cluster.Has(config.task)) {
    return Invalid("the host name \"", options.host_name, "\" is that of ",
                   config.task.ToString(),
                   ", but --cluster_tasks=", ToString(options.roles), " has ",
                   config.cluster.task_count(config.task.type), " tasks of ",
                   TaskTypeName(config.task.type),
                   "; give every pod the number of pods of each role");
  }
  return config;
}

}  // namespace

bool IsInKubernetesPod(EnvironmentLookup environment) {
  return environment("KUBERNETES_SERVICE_HOST") != nullptr;
}

absl::StatusOr<ClusterConfig> ResolveKubernetesCluster(
    const KubernetesOptions& options, EnvironmentLookup environment) {
  absl::StatusOr<ClusterConfig> config = ResolvePods(options, environment);
  if (!config.ok()) {
    return Invalid("Kubernetes: ", config.status().message());
  }
  config->source = absl::StrCat("Kubernetes: host name ", options.host_name);
  return config;
}

}  // namespace muster
