#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cpu/elementwise.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/cpu/vector_math.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/tensor/attributes.h"

// Arithmetic, comparison, logic, selection and conversion, with broadcasting.
namespace muster {
namespace {

// Signed integers wrap around.
template <typename T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                std::type_identity<T>>::type;

struct AddFunction {
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct SubFunction {
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct MulFunction {
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct DivFunction {
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    return a / b;
  }
};
// NaN if either operand is NaN.
struct MaximumFunction {
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct MinimumFunction {
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct SquaredDifferenceFunction {
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    return (a - b) * (a - b);
  }
};

struct EqualFunction {
  template <typename T>
  MUSTER_INLINE bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqualFunction {
  template <typename T>
  MUSTER_INLINE bool operator()(T a, T b) const {
    return a != b;
  }
};
struct LessFunction {
  template <typename T>
  MUSTER_INLINE bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqualFunction {
  template <typename T>
  MUSTER_INLINE bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct GreaterFunction {
  template <typename T>
  MUSTER_INLINE bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqualFunction {
  template <typename T>
  MUSTER_INLINE bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct AndFunction {
  MUSTER_INLINE bool operator()(bool a, bool b) const { return a & b; }
};
struct OrFunction {
  MUSTER_INLINE bool operator()(bool a, bool b) const { return a | b; }
};

struct NotFunction {
  MUSTER_INLINE bool operator()(bool x) const { return !x; }
};
struct NegFunction {
  template <typename T>
  MUSTER_INLINE T operator()(T x) const {
    return -x;
  }
};
struct AbsFunction {
  MUSTER_INLINE float operator()(float x) const { return std::fabs(x); }
};
struct SquareFunction {
  template <typename T>
  MUSTER_INLINE T operator()(T x) const {
    return x * x;
  }
};
struct SqrtFunction {
  MUSTER_INLINE float operator()(float x) const { return std::sqrt(x); }
};
struct RsqrtFunction {
  MUSTER_INLINE float operator()(float x) const { return 1.0f / std::sqrt(x); }
};
struct ReciprocalFunction {
  MUSTER_INLINE float operator()(float x) const { return 1.0f / x; }
};
struct ExpFunction {
  MUSTER_INLINE float operator()(float x) const { return VectorExp(x); }
};
struct LogFunction {
  MUSTER_INLINE float operator()(float x) const { return VectorLog(x); }
};
struct ErfFunction {
  MUSTER_INLINE float operator()(float x) const { return VectorErf(x); }
};

// Converts between types for which C++ preserves the value or rounds it
// correctly.
template <typename Out>
struct CastFunction {
  template <typename In>
  MUSTER_INLINE Out operator()(In x) const {
    return static_cast<Out>(x);
  }
};

template <template <typename, typename, typename> typename K, typename F>
void RegisterSameType(KernelRegistry* registry, absl::string_view op,
                      int input_count) {
  const auto make = [](const Attributes&) { return F(); };
  RegisterElementwise<K, float, float>(registry, op, input_count, make);
  RegisterElementwise<K, double, double>(registry, op, input_count, make);
}

template <typename F>
void RegisterArithmetic(KernelRegistry* registry, absl::string_view op) {
  const auto make = [](const Attributes&) { return F(); };
  RegisterSameType<BinaryKernel, F>(registry, op, 2);
  RegisterElementwise<BinaryKernel, int32_t, int32_t>(registry, op, 2, make);
  RegisterElementwise<BinaryKernel, int64_t, int64_t>(registry, op, 2, make);
}

template <typename F>
void RegisterComparison(KernelRegistry* registry, absl::string_view op) {
  const auto make = [](const Attributes&) { return F(); };
  RegisterElementwise<BinaryKernel, float, bool>(registry, op, 2, make);
  RegisterElementwise<BinaryKernel, int32_t, bool>(registry, op, 2, make);
  RegisterElementwise<BinaryKernel, int64_t, bool>(registry, op, 2, make);
}

template <typename F>
void RegisterUnaryFloat(KernelRegistry* registry, absl::string_view op) {
  RegisterElementwise<UnaryKernel, float, float>(
      registry, op, 1, [](const Attributes&) { return F(); });
}

template <typename In, typename Out>
void RegisterCast(KernelRegistry* registry) {
  RegisterElementwise<UnaryKernel, In, Out>(
      registry, "Cast", 1,
      [](const Attributes&) { return CastFunction<Out>(); });
}

void RegisterBinaryKernels(KernelRegistry* registry) {
  RegisterArithmetic<AddFunction>(registry, "Add");
  RegisterArithmetic<SubFunction>(registry, "Sub");
  RegisterArithmetic<MulFunction>(registry, "Mul");
  RegisterArithmetic<MaximumFunction>(registry, "Maximum");
  RegisterArithmetic<MinimumFunction>(registry, "Minimum");
  RegisterSameType<BinaryKernel, DivFunction>(registry, "Div", 2);
  RegisterSameType<BinaryKernel, SquaredDifferenceFunction>(
      registry, "SquaredDifference", 2);
  RegisterComparison<EqualFunction>(registry, "Equal");
  RegisterComparison<NotEqualFunction>(registry, "NotEqual");
  RegisterComparison<LessFunction>(registry, "Less");
  RegisterComparison<LessEqualFunction>(registry, "LessEqual");
  RegisterComparison<GreaterFunction>(registry, "Greater");
  RegisterComparison<GreaterEqualFunction>(registry, "GreaterEqual");
  RegisterElementwise<BinaryKernel, bool, bool>(
      registry, "LogicalAnd", 2,
      [](const Attributes&) { return AndFunction(); });
  RegisterElementwise<BinaryKernel, bool, bool>(
      registry, "LogicalOr", 2, [](const Attributes&) { return OrFunction(); });
}

void RegisterUnaryKernels(KernelRegistry* registry) {
  RegisterElementwise<UnaryKernel, bool, bool>(
      registry, "LogicalNot", 1,
      [](const Attributes&) { return NotFunction(); });
  RegisterSameType<UnaryKernel, NegFunction>(registry, "Neg", 1);
  RegisterSameType<UnaryKernel, SquareFunction>(registry, "Square", 1);
  RegisterUnaryFloat<AbsFunction>(registry, "Abs");
  RegisterUnaryFloat<SqrtFunction>(registry, "Sqrt");
  RegisterUnaryFloat<RsqrtFunction>(registry, "Rsqrt");
  RegisterUnaryFloat<ReciprocalFunction>(registry, "Reciprocal");
  RegisterUnaryFloat<ExpFunction>(registry, "Exp");
  RegisterUnaryFloat<LogFunction>(registry, "Log");
  RegisterUnaryFloat<ErfFunction>(registry, "Erf");
  RegisterCast<bool, float>(registry);
  RegisterCast<uint8_t, float>(registry);
  RegisterCast<int32_t, float>(registry);
  RegisterCast<int64_t, float>(registry);
  RegisterCast<double, float>(registry);
  RegisterCast<float, double>(registry);
  RegisterCast<float, bool>(registry);
  RegisterCast<int32_t, int64_t>(registry);
  RegisterCast<uint8_t, int64_t>(registry);
}

// condition ? a : b. Within a run, each operand may be constant.
class SelectKernel : public Kernel {
 public:
  explicit SelectKernel(const KernelSpec& spec)
      : walk_(spec.outputs[0].shape,
              {&spec.inputs[0].shape, &spec.inputs[1].shape,
               &spec.inputs[2].shape}),
        may_share_{false, IsWalkedAlike(spec.inputs[1], spec.outputs[0]),
                   IsWalkedAlike(spec.inputs[2], spec.outputs[0])} {}

  absl::Status Run(const KernelArguments& arguments) override {
    const bool* const condition = arguments.inputs[0]->flat<bool>().data();
    const float* const a = arguments.inputs[1]->flat<float>().data();
    const float* const b = arguments.inputs[2]->flat<float>().data();
    float* const out = arguments.outputs[0]->mutable_flat<float>().data();
    const bool all_move = walk_.run_stride(0) != 0 &&
                          walk_.run_stride(1) != 0 && walk_.run_stride(2) != 0;
    walk_.ForEachRun([&](int64_t begin, const int64_t* offsets) {
      if (all_move) {
        RunVectorized<AllMove>(walk_.run_length(), condition + offsets[0],
                               a + offsets[1], b + offsets[2], out + begin);
        return;
      }
      for (int64_t i = 0; i < walk_.run_length(); ++i) {
        out[begin + i] = condition[offsets[0] + i * walk_.run_stride(0)]
                             ? a[offsets[1] + i * walk_.run_stride(1)]
                             : b[offsets[2] + i * walk_.run_stride(2)];
      }
    });
    return absl::OkStatus();
  }
  bool MayShareOutputWithInput(int input) const override {
    return may_share_[input];
  }

 private:
  struct AllMove {
    MUSTER_INLINE static void Run(int64_t count, const bool* condition,
                                  const float* a, const float* b, float* out) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < count; ++i) {
        const float if_true = a[i];
        const float if_false = b[i];
        out[i] = condition[i] ? if_true : if_false;
      }
    }
  };

  const BroadcastWalk walk_;
  const bool may_share_[3];
};

// Broadcasts one operand: copies runs or repeats one element.
class BroadcastKernel : public Kernel {
 public:
  explicit BroadcastKernel(const KernelSpec& spec)
      : walk_(spec.outputs[0].shape, {&spec.inputs[0].shape}) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const float* const in = arguments.inputs[0]->flat<float>().data();
    float* const out = arguments.outputs[0]->mutable_flat<float>().data();
    const int64_t length = walk_.run_length();
    const bool moves = walk_.run_stride(0) != 0;
    walk_.ForEachRun([&](int64_t begin, const int64_t* offsets) {
      if (moves) {
        std::copy_n(in + offsets[0], length, out + begin);
      } else {
        std::fill_n(out + begin, length, in[offsets[0]]);
      }
    });
    return absl::OkStatus();
  }

 private:
  const BroadcastWalk walk_;
};

}  // namespace

namespace internal {

void RegisterCpuArithmeticKernels(KernelRegistry* registry) {
  RegisterBinaryKernels(registry);
  RegisterUnaryKernels(registry);
  registry->Register("Select",
                     [](const KernelSpec& spec,
                        int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                       if (spec.outputs[0].dtype != DType::kFloat32) {
                         return absl::UnimplementedError("float32 only");
                       }
                       return std::make_unique<SelectKernel>(spec);
                     });
  for (const char* op : {"BroadcastTo", "BroadcastLike"}) {
    registry->Register(op,
                       [](const KernelSpec& spec,
                          int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                         if (spec.outputs[0].dtype != DType::kFloat32) {
                           return absl::UnimplementedError("float32 only");
                         }
                         return std::make_unique<BroadcastKernel>(spec);
                       });
  }
}

}  // namespace internal
}  // namespace muster
