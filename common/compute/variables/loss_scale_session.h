#ifndef COMMON_COMPUTE_VARIABLES_LOSS_SCALE_SESSION_H_
#define COMMON_COMPUTE_VARIABLES_LOSS_SCALE_SESSION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Inspects gradients in the memory where they are. Not thread-safe.
class GradientReader {
 public:
  virtual ~GradientReader() = default;

  // Returns true if no element of any of `gradients`, which are float32 or
  // float64, is NaN or infinite.
  virtual absl::StatusOr<bool> AreFinite(absl::Span<const Tensor> gradients);

  // Returns the value of a float32 scalar.
  virtual absl::StatusOr<float> ReadScalar(const Tensor& scalar);
};

// Returns a session that applies gradients only if they are finite, for the
// updates in `uses` that name a loss_scale. Returns `inner` itself if no update
// does. All gradients that name the same loss_scale are applied when the step
// commits, or none of them if an element is not finite. Then the loss_scale
// variable itself takes a gradient, which MakeLossScaleRule() interprets: its
// value, negated if the gradients were dropped. Reading a variable after its
// gradient in the same step returns
//   kUnimplemented  names the variable
//
// With a gate, the device decides through DropUnlessFinite(), and the host does
// not wait.
//
// In synchronous training `inner` takes the combined gradients, so that all
// replicas make the same decision. `reader` is null for gradients on the host.
std::unique_ptr<VariableSession> WithLossScale(
    std::unique_ptr<VariableSession> inner, absl::Span<const VariableUse> uses,
    std::unique_ptr<GradientReader> reader = nullptr);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_LOSS_SCALE_SESSION_H_
