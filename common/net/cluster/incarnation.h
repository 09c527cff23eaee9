#ifndef COMMON_NET_CLUSTER_INCARNATION_H_
#define COMMON_NET_CLUSTER_INCARNATION_H_

#include <cstdint>
#include <string>

#include "common/core/base/strong_int.h"

namespace muster {

// One process in one place of the cluster, drawn at random when it starts. The
// same TaskId with another incarnation is another process, which knows nothing
// of what the one before it was told. 0 means "not known".
using Incarnation = StrongInt<struct IncarnationTag, uint64_t>;

Incarnation NewIncarnation();

// Eight hexadecimal digits, for people: "6f1c02a9".
std::string ToString(Incarnation incarnation);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_INCARNATION_H_
