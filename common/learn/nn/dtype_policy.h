#ifndef COMMON_LEARN_NN_DTYPE_POLICY_H_
#define COMMON_LEARN_NN_DTYPE_POLICY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// In what a layer computes. Its variables are float32 in any case, and so are
// their gradients and what optimizers keep.
//
// Equivalent to: keras.DTypePolicy.
struct DTypePolicy {
  DType compute = DType::kFloat32;

  bool operator==(const DTypePolicy&) const = default;
};
inline constexpr DTypePolicy kFloat32Policy{};
// Inputs and weights become bfloat16 where a layer takes them. Half of the
// memory, and products are faster where the processor has them (avx512_bf16,
// amx); the range is float32's, so losses need no scaling.
inline constexpr DTypePolicy kMixedBfloat16Policy{DType::kBfloat16};

// "float32" or "mixed_bfloat16".
//   kInvalidArgument  another name; says which there are
absl::StatusOr<DTypePolicy> ParseDTypePolicy(absl::string_view name);
std::string DTypePolicyName(const DTypePolicy& policy);

// Of the layers that this thread makes from now on.
// Equivalent to: keras.config.set_dtype_policy.
void SetDTypePolicy(const DTypePolicy& policy);
DTypePolicy CurrentDTypePolicy();

// Sets a policy for as long as it lives, on one thread.
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
