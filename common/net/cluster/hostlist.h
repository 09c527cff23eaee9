#ifndef COMMON_NET_CLUSTER_HOSTLIST_H_
#define COMMON_NET_CLUSTER_HOSTLIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_HOSTLIST_H_
