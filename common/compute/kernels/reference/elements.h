#ifndef COMMON_COMPUTE_KERNELS_REFERENCE_ELEMENTS_H_
#define COMMON_COMPUTE_KERNELS_REFERENCE_ELEMENTS_H_

#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/numbers.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/tensor.h"

// Building blocks of the reference kernels: the types in which elements are
// computed, and kernels made from a function.
namespace muster::internal {

template <typename T>
inline constexpr bool kIs16BitFloat =
    std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;
template <typename T>
inline constexpr bool kIsFloating =
    std::is_floating_point_v<T> || kIs16BitFloat<T>;
template <typename T>
inline constexpr bool kIsNumber = !std::is_same_v<T, bool>;

// The type in which one element is computed.
template <typename T>
using Computed = std::conditional_t<kIs16BitFloat<T>, float, T>;
// The type in which many elements are summed.
template <typename T>
using Accumulated = std::conditional_t<kIsFloating<T>, double, T>;

template <typename T>
Computed<T> Widen(T element) {
  return static_cast<Computed<T>>(element);
}

template <typename T, typename From>
T Narrow(From value) {
  if constexpr (kIs16BitFloat<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// Copies all elements to memory of the same size, which may overlap. Does not
// support strings.
inline void CopyElements(const Tensor& from, Tensor* to) {
  if (from.size_bytes() > 0) {
    std::memmove(to->mutable_raw_data(), from.raw_data(), from.size_bytes());
  }
}

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// Makes a kernel from a function. `shared_inputs` has a bit for each input
// whose memory output 0 may share.
KernelOr MakeKernel(
    std::function<absl::Status(const KernelArguments& arguments)> run,
    uint32_t shared_inputs = 0);

// Makes a kernel that calls `run` with a copy of `state`. Functions for many
// element types then share the code that copies and stores their state. A
// lambda that captures the state would need such code for each type, which
// dominates the compile time.
template <typename State>
ABSL_ATTRIBUTE_NOINLINE KernelOr MakeKernel(
    const State& state,
    std::type_identity_t<absl::Status (*)(const State& state,
                                          const KernelArguments& arguments)>
        run,
    uint32_t shared_inputs = 0) {
  return MakeKernel(
      [state, run](const KernelArguments& arguments) {
        return run(state, arguments);
      },
      shared_inputs);
}

absl::Status UnsupportedTypes(const KernelSpec& spec);

// Calls visitor.operator()<T>() -> KernelOr for a number or bool dtype that
// `kSupported` allows; returns kUnimplemented for all others.
enum class Supported { kNumberOrBool, kNumber, kFloating };

template <Supported kSupported, typename Visitor>
KernelOr VisitSupported(DType dtype, const KernelSpec& spec,
                        Visitor&& visitor) {
  if (dtype == DType::kString || dtype == DType::kInvalid) {
    return UnsupportedTypes(spec);
  }
  return VisitNumber(dtype, [&]<typename T>() -> KernelOr {
    if constexpr (kSupported == Supported::kNumberOrBool ||
                  (kSupported == Supported::kNumber && kIsNumber<T>) ||
                  kIsFloating<T>) {
      return visitor.template operator()<T>();
    } else {
      return UnsupportedTypes(spec);
    }
  });
}

// Registers `make`, a KernelOr(const KernelSpec&).
template <typename Make>
void RegisterReference(KernelRegistry* registry, absl::string_view op,
                       Make make) {
  registry->Register(op, [make](const KernelSpec& spec, int) -> KernelOr {
    return make(spec);
  });
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_REFERENCE_ELEMENTS_H_
