#include "common/learn/nn/dtype_policy.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

DTypePolicy& PolicyOfThread() {
  static thread_local DTypePolicy policy;
  return policy;
}

}  // namespace

absl::StatusOr<DTypePolicy> ParseDTypePolicy(absl::string_view name) {
  for (const DTypePolicy& policy :
       {kFloat32Policy, kMixedBfloat16Policy, kMixedFloat16Policy}) {
    if (name == DTypePolicyName(policy)) return policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no dtype policy \"", name,
                   "\"; expected float32, mixed_bfloat16 or mixed_float16"));
}

std::string DTypePolicyName(const DTypePolicy& policy) {
  if (policy == kMixedBfloat16Policy) return "mixed_bfloat16";
  return policy == kMixedFloat16Policy ? "mixed_float16" : "float32";
}

void SetDTypePolicy(const DTypePolicy& policy) { PolicyOfThread() = policy; }

DTypePolicy CurrentDTypePolicy() { return PolicyOfThread(); }

DTypePolicyScope::DTypePolicyScope(const DTypePolicy& policy)
    : outer_(CurrentDTypePolicy()) {
  SetDTypePolicy(policy);
}

DTypePolicyScope::~DTypePolicyScope() { SetDTypePolicy(outer_); }

}  // namespace muster
