#ifndef COMMON_LEARN_STRATEGY_COMMUNICATION_OPTIONS_H_
#define COMMON_LEARN_STRATEGY_COMMUNICATION_OPTIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/net/collectives/communication_implementation.h"

namespace muster {

// How replicas exchange what they have computed.
//
// Equivalent to: tf.distribute.experimental.CommunicationOptions.
struct CommunicationOptions {
  // Gradients travel together; a pack that has come to more is sent off. 0:
  // one pack for all of a dtype. At least 0.
  int64_t bytes_per_pack = 0;
  // How long one collective may wait for the other replicas. More than zero.
  absl::Duration timeout = absl::Seconds(300);
  CommunicationImplementation implementation =
      CommunicationImplementation::kAuto;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_COMMUNICATION_OPTIONS_H_
