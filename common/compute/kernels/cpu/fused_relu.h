#ifndef COMMON_COMPUTE_KERNELS_CPU_FUSED_RELU_H_
#define COMMON_COMPUTE_KERNELS_CPU_FUSED_RELU_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/vectorized.h"

// Relu and Relu6 as the end of another op: the attribute "activation" of the
// ops that the runtime's rewrites create. NaN stays NaN. oneDNN's relu converts
// it to 0, which would hide that a model has diverged.
namespace muster::internal {

enum class FusedRelu { kNone, kRelu, kRelu6 };

// Returns the activation with this name; an empty name means kNone.
//   kUnimplemented  another activation
inline absl::StatusOr<FusedRelu> FindFusedRelu(absl::string_view name) {
  if (name.empty()) return FusedRelu::kNone;
  if (name == "Relu") return FusedRelu::kRelu;
  if (name == "Relu6") return FusedRelu::kRelu6;
  return absl::UnimplementedError(absl::StrCat("no activation ", name));
}

struct ReluInPlace {
  MUSTER_INLINE static void Run(int64_t count, float* x) {
    for (int64_t i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
  }
};
struct Relu6InPlace {
  MUSTER_INLINE static void Run(int64_t count, float* x) {
    for (int64_t i = 0; i < count; ++i) {
      const float positive = x[i] < 0 ? 0 : x[i];
      x[i] = positive > 6 ? 6 : positive;
    }
  }
};

// Applies `relu` to x[0, count).
inline void ApplyInPlace(FusedRelu relu, int64_t count, float* x) {
  if (relu == FusedRelu::kRelu) RunVectorized<ReluInPlace>(count, x);
  if (relu == FusedRelu::kRelu6) RunVectorized<Relu6InPlace>(count, x);
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CPU_FUSED_RELU_H_
