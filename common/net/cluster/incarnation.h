#ifndef COMMON_NET_CLUSTER_INCARNATION_H_
#define COMMON_NET_CLUSTER_INCARNATION_H_

#include <cstdint>
#include <string>

#include "common/core/base/strong_int.h"

namespace muster {

// Identifies one process of a task: a random number drawn at its start. The
// same TaskId with another incarnation is a new process without the state of
// the previous one. 0 means unknown.
using Incarnation = StrongInt<struct IncarnationTag, uint64_t>;

Incarnation NewIncarnation();

// Returns eight hexadecimal digits for messages: "6f1c02a9".
std::string ToString(Incarnation incarnation);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_INCARNATION_H_
