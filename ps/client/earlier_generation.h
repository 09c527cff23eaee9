#ifndef PS_CLIENT_EARLIER_GENERATION_H_
#define PS_CLIENT_EARLIER_GENERATION_H_

#include "absl/status/status.h"

namespace muster {

// Marks the refusal of an exchange from before the last rollback of training.
absl::Status AsOfEarlierGeneration(absl::Status refusal);

// True if AsOfEarlierGeneration() has marked the status, also on a server.
bool IsOfEarlierGeneration(const absl::Status& status);

}  // namespace muster

#endif  // PS_CLIENT_EARLIER_GENERATION_H_
