#ifndef COMMON_NET_COLLECTIVES_COMMUNICATION_IMPLEMENTATION_H_
#define COMMON_NET_COLLECTIVES_COMMUNICATION_IMPLEMENTATION_H_

#include "absl/strings/string_view.h"

namespace muster {

// Selects the transports that a group may use
// (common/net/collectives/transports/transports.h).
//
// Equivalent to: tf.distribute.experimental.CommunicationImplementation.
enum class CommunicationImplementation {
  kAuto,  // The best transport that fits, of any implementation.
  kRing,  // Transports of replicas on CPUs.
  kNccl,  // Transports of replicas on GPUs.
};

inline constexpr CommunicationImplementation kCommunicationImplementations[] = {
    CommunicationImplementation::kAuto,
    CommunicationImplementation::kRing,
    CommunicationImplementation::kNccl,
};

// "AUTO", "RING" or "NCCL".
constexpr absl::string_view CommunicationImplementationName(
    CommunicationImplementation implementation) {
  switch (implementation) {
    case CommunicationImplementation::kAuto:
      return "AUTO";
    case CommunicationImplementation::kRing:
      return "RING";
    case CommunicationImplementation::kNccl:
      return "NCCL";
  }
  return "unknown";
}

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_COMMUNICATION_IMPLEMENTATION_H_
