#ifndef COMMON_LEARN_STRATEGY_COMMUNICATION_OPTIONS_H_
#define COMMON_LEARN_STRATEGY_COMMUNICATION_OPTIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/net/collectives/communication_implementation.h"

namespace muster {

// How replicas exchange values.
//
// Equivalent to: tf.distribute.experimental.CommunicationOptions.
struct CommunicationOptions {
  // Gradients are packed; a pack is sent when it exceeds this size. 0: one pack
  // per dtype. At least 0.
  int64_t bytes_per_pack = 0;
  // The maximum time that a collective waits for the other replicas. More than
  // zero.
  absl::Duration timeout = absl::Seconds(300);
  CommunicationImplementation implementation =
      CommunicationImplementation::kAuto;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_COMMUNICATION_OPTIONS_H_
