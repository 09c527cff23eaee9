#ifndef COMMON_COMPUTE_VARIABLES_LOSS_SCALE_SESSION_H_
#define COMMON_COMPUTE_VARIABLES_LOSS_SCALE_SESSION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Looks at gradients where they are. Not thread-safe.
class GradientReader {
 public:
  virtual ~GradientReader() = default;

  // Returns true if no element of any of `gradients`, which are float32 or
  // float64, is NaN or infinite.
  virtual absl::StatusOr<bool> AreFinite(absl::Span<const Tensor> gradients);

  // Returns the value of a float32 scalar.
  virtual absl::StatusOr<float> ReadScalar(const Tensor& scalar);
};

// A session that applies gradients only if they are finite, as the updates of
// `uses` say that name a loss_scale; `inner` itself if none does. Gradients
// that name one variable are applied together when the step commits, or not at
// all if an element of one is not finite. Then the variable takes a gradient of
// its own, through MakeLossScaleRule(): its value, negated if the gradients
// were not applied. To read a variable behind its gradient is
//   kUnimplemented  names the variable
//
// With a gate, the device decides, and the host does not wait for it:
// DropUnlessFinite().
//
// Where replicas train in sync, `inner` takes the combined gradients, so that
// all replicas decide alike. `reader`: null for gradients on the host.
std::unique_ptr<VariableSession> WithLossScale(
    std::unique_ptr<VariableSession> inner, absl::Span<const VariableUse> uses,
    std::unique_ptr<GradientReader> reader = nullptr);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_LOSS_SCALE_SESSION_H_
