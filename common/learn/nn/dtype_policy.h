#ifndef COMMON_LEARN_NN_DTYPE_POLICY_H_
#define COMMON_LEARN_NN_DTYPE_POLICY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// The dtype in which a layer computes. Variables, their gradients and optimizer
// slots are float32 in every policy.
//
// Equivalent to: keras.DTypePolicy.
struct DTypePolicy {
  DType compute = DType::kFloat32;

  bool operator==(const DTypePolicy&) const = default;
};
inline constexpr DTypePolicy kFloat32Policy{};
// Layers cast their inputs and weights to bfloat16. Activations take half the
// memory, and products are faster on processors with bfloat16 instructions
// (avx512_bf16, amx). The range is that of float32, so losses need no scaling.
inline constexpr DTypePolicy kMixedBfloat16Policy{DType::kBfloat16};
// Layers cast their inputs and weights to float16, which has three digits and
// numbers from 6e-8 to 65504. Gradients below that are 0, so Model::Compile()
// scales the loss: LossScaleOptimizer().
inline constexpr DTypePolicy kMixedFloat16Policy{DType::kFloat16};

// Parses "float32", "mixed_bfloat16" or "mixed_float16".
//   kInvalidArgument  any other name
absl::StatusOr<DTypePolicy> ParseDTypePolicy(absl::string_view name);
std::string DTypePolicyName(const DTypePolicy& policy);

// Sets the policy of the layers that the calling thread creates from now on.
// Equivalent to: keras.config.set_dtype_policy.
void SetDTypePolicy(const DTypePolicy& policy);
DTypePolicy CurrentDTypePolicy();

// Sets the policy of the calling thread for the lifetime of the scope.
class DTypePolicyScope {
 public:
  explicit DTypePolicyScope(const DTypePolicy& policy);
  ~DTypePolicyScope();
  DTypePolicyScope(const DTypePolicyScope&) = delete;
  DTypePolicyScope& operator=(const DTypePolicyScope&) = delete;

 private:
  const DTypePolicy outer_;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_DTYPE_POLICY_H_
