#include "common/net/cluster/cluster_resolver.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/kubernetes_cluster.h"
#include "common/net/cluster/role_counts.h"
#include "common/net/cluster/slurm_cluster.h"
#include "common/net/cluster/tf_config.h"

namespace muster {
namespace {

// Port of the task in a pod. Each pod has its own address, so all use the same
// port.
constexpr int kPodPort = 8888;
constexpr absl::string_view kAuto = "auto";
constexpr absl::string_view kTfConfig = "tf_config";
constexpr absl::string_view kSlurm = "slurm";
constexpr absl::string_view kKubernetes = "kubernetes";
constexpr absl::string_view kResolvers[] = {kAuto, kTfConfig, kSlurm,
                                            kKubernetes};

absl::Status CheckResolver(absl::string_view name) {
  for (absl::string_view resolver : kResolvers) {
    if (name == resolver) return absl::OkStatus();
  }
  const std::string hint = DidYouMean(name, kResolvers);
  return absl::InvalidArgumentError(absl::StrCat(
      "--cluster_resolver=", name,
      hint.empty() ? "; expected auto, tf_config, slurm or kubernetes" : hint));
}

absl::StatusOr<absl::string_view> Choose(const ClusterSources& sources,
                                         EnvironmentLookup environment) {
  RETURN_IF_ERROR(CheckResolver(sources.resolver));
  if (sources.resolver != kAuto) return sources.resolver;
  if (environment("TF_CONFIG") != nullptr) return kTfConfig;
  if (IsInSlurmStep(environment)) return kSlurm;
  if (sources.cluster_tasks.empty()) return kTfConfig;
  if (IsInKubernetesPod(environment)) return kKubernetes;
  return absl::InvalidArgumentError(absl::StrCat(
      "--cluster_tasks=", sources.cluster_tasks,
      " is for tasks that srun or Kubernetes starts, and this process is in "
      "neither a Slurm step nor a pod; start it there, name the engine with "
      "--cluster_resolver, or set TF_CONFIG instead"));
}

}  // namespace

absl::StatusOr<ClusterConfig> ResolveCluster(const ClusterSources& sources,
                                             EnvironmentLookup environment) {
  if (sources.hosts.any()) return ParseHostFlags(sources.hosts);
  if (!sources.tf_config.empty()) {
    return ParseTfConfig(sources.tf_config, "--tf_config");
  }
  ASSIGN_OR_RETURN(const absl::string_view resolver,
                   Choose(sources, environment));
  if (resolver == kTfConfig) {
    const char* const text = environment("TF_CONFIG");
    return ParseTfConfig(text == nullptr ? "" : text, "TF_CONFIG");
  }
  const absl::StatusOr<RoleCounts> roles =
      ParseRoleCounts(sources.cluster_tasks);
  if (!roles.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cluster_tasks: ", roles.status().message()));
  }
  if (sources.port_base < 0 || sources.port_base > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--port_base=", sources.port_base,
                     "; expected 1 to 65535, or 0 to have one chosen"));
  }
  if (resolver == kSlurm) {
    return ResolveSlurmCluster(*roles, sources.port_base, environment);
  }
  return ResolveKubernetesCluster(
      {.roles = *roles,
       .service = sources.kubernetes_service,
       .port = sources.port_base == 0 ? kPodPort : sources.port_base,
       .host_name = sources.host_name},
      environment);
}

}  // namespace muster
