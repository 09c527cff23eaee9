#ifndef PS_CLIENT_UPDATE_GATE_H_
#define PS_CLIENT_UPDATE_GATE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace muster {

// Decides whether the gradients of a step may be sent to the servers, in
// synchronous training. Thread-safe.
class UpdateGate {
 public:
  virtual ~UpdateGate() = default;

  // Blocks until the decision on the step is known.
  //   kAborted    the gradients must not be sent: the weights that they were
  //               computed with have been replaced
  //   kCancelled  there will be no decision, because the session has ended
  virtual absl::Status AwaitPermission(uint64_t step_id) = 0;

  // Returns how many steps an update takes the mean of.
  virtual int closures_per_update() const = 0;
};

}  // namespace muster

#endif  // PS_CLIENT_UPDATE_GATE_H_
