#ifndef COMMON_NET_CLUSTER_SLURM_CLUSTER_H_
#define COMMON_NET_CLUSTER_SLURM_CLUSTER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/environment_lookup.h"
#include "common/net/cluster/role_counts.h"

namespace muster {

// Expands Slurm's notation of host names, in the order of
// `scontrol show hostnames`:
//
//   "node[0-2,07],gpu-1-ib"  node0 node1 node2 node07 gpu-1-ib
//   "rack[0-1]n[08-09]"      rack0n08 rack0n09 rack1n08 rack1n09
//
// Numbers have at least as many digits as the first number of their range.
//
//   kInvalidArgument  an unmatched bracket, an empty name or range, a range
//                     that is not a pair of ascending numbers, or more than
//                     65,536 names; the message quotes the part of the list
absl::StatusOr<std::vector<std::string>> ExpandHostlist(absl::string_view list);

// True in a process that srun(1) has started.
bool IsInSlurmStep(EnvironmentLookup environment);

// Derives the cluster and this process's task from the variables that srun(1)
// sets:
//
//   SLURM_STEP_NODELIST        "node[0-3]": the hosts
//   SLURM_STEP_TASKS_PER_NODE  "2(x3),1": how many tasks each host has
//   SLURM_STEP_NUM_TASKS       "7": their sum
//   SLURM_PROCID               "4": the rank of this process
//   SLURM_NODEID, SLURM_LOCALID  "2", "0": the host of this process and its
//                                index on this host; optional
//
// Ranks are assigned to roles in the order of `roles`: with ps=1,worker=2 rank
// 0 is ps 0. Without roles every rank is a worker, and a single rank runs
// alone. Task k of a host, counted from 0, has the port `port_base` + k. If
// `port_base` is 0, the first port is one that other jobs on the host are
// unlikely to use:
//
//   SLURM_STEP_RESV_PORTS      "12000-12003": what srun --resv-ports reserved
//   SLURM_JOB_ID, SLURM_STEP_ID  otherwise choose one of the ranges of 128
//                                ports from 20000 to 32671
//
// Equivalent to: tf.distribute.cluster_resolver.SlurmClusterResolver.
//
//   kInvalidArgument  a variable is not set or is invalid, `roles` and the step
//                     have different numbers of tasks, fewer ports are reserved
//                     than a host has tasks, or the step does not use
//                     --distribution=block; the message names the variable, its
//                     value and what was expected
absl::StatusOr<ClusterConfig> ResolveSlurmCluster(
    const RoleCounts& roles, int port_base, EnvironmentLookup environment);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_SLURM_CLUSTER_H_
