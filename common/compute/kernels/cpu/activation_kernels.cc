#include <cmath>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cpu/elementwise.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/cpu/vector_math.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/tensor/attributes.h"

// Activations and their gradients; <op>Grad(gradient, x or y) as in
// common/compute/ops.
namespace muster {
namespace {

constexpr float kSqrtHalf = 0.70710678118654752f;
constexpr float kSqrtTwoOverPi = 0.79788456080286536f;
constexpr float kInverseSqrtTwoPi = 0.39894228040143268f;
constexpr float kGeluCubic = 0.044715f;

// The comparisons propagate NaN.
struct ReluFunction {
  MUSTER_INLINE float operator()(float x) const { return x < 0 ? 0 : x; }
};
struct Relu6Function {
  MUSTER_INLINE float operator()(float x) const {
    x = x < 0 ? 0 : x;
    return x > 6 ? 6 : x;
  }
};
struct LeakyReluFunction {
  float alpha;
  MUSTER_INLINE float operator()(float x) const {
    return x < 0 ? alpha * x : x;
  }
};
struct EluFunction {
  float alpha;
  MUSTER_INLINE float operator()(float x) const {
    const float below = alpha * VectorExpm1OfNegative(x < 0 ? x : 0);
    return x < 0 ? below : x;
  }
};
struct SigmoidFunction {
  MUSTER_INLINE float operator()(float x) const { return VectorSigmoid(x); }
};
struct TanhFunction {
  MUSTER_INLINE float operator()(float x) const { return VectorTanh(x); }
};
struct SoftplusFunction {
  MUSTER_INLINE float operator()(float x) const { return VectorSoftplus(x); }
};
struct SoftsignFunction {
  MUSTER_INLINE float operator()(float x) const {
    return x / (1 + std::fabs(x));
  }
};
struct GeluFunction {
  MUSTER_INLINE float operator()(float x) const {
    return 0.5f * x * (1 + VectorErf(x * kSqrtHalf));
  }
};
struct GeluTanhFunction {
  MUSTER_INLINE float operator()(float x) const {
    const float inner = kSqrtTwoOverPi * (x + kGeluCubic * x * x * x);
    return 0.5f * x * (1 + VectorTanh(inner));
  }
};

struct ReluGradFunction {
  MUSTER_INLINE float operator()(float gradient, float x) const {
    return x > 0 ? gradient : 0;
  }
};
struct Relu6GradFunction {
  MUSTER_INLINE float operator()(float gradient, float x) const {
    return ((x > 0) & (x < 6)) ? gradient : 0;
  }
};
struct LeakyReluGradFunction {
  float alpha;
  MUSTER_INLINE float operator()(float gradient, float x) const {
    return x > 0 ? gradient : alpha * gradient;
  }
};
struct EluGradFunction {
  float alpha;
  MUSTER_INLINE float operator()(float gradient, float x) const {
    const float below = gradient * alpha * VectorExp(x < 0 ? x : 0);
    return x < 0 ? below : gradient;
  }
};
struct SigmoidGradFunction {
  MUSTER_INLINE float operator()(float gradient, float y) const {
    return gradient * y * (1 - y);
  }
};
struct TanhGradFunction {
  MUSTER_INLINE float operator()(float gradient, float y) const {
    return gradient * (1 - y * y);
  }
};
struct GeluGradFunction {
  MUSTER_INLINE float operator()(float gradient, float x) const {
    const float cdf = 0.5f * (1 + VectorErf(x * kSqrtHalf));
    const float pdf = kInverseSqrtTwoPi * VectorExp(-0.5f * x * x);
    return gradient * (cdf + x * pdf);
  }
};
struct GeluTanhGradFunction {
  MUSTER_INLINE float operator()(float gradient, float x) const {
    const float t = VectorTanh(kSqrtTwoOverPi * (x + kGeluCubic * x * x * x));
    const float inner = kSqrtTwoOverPi * (1 + 3 * kGeluCubic * x * x);
    const float rest = 1 - t * t;
    // If tanh is flat at x, `inner` may overflow.
    const float bell = rest == 0 ? 0 : x * rest * inner;
    return gradient * 0.5f * (1 + t + bell);
  }
};

// max(x, 0) - x z + log(1 + exp(-|x|))
struct SigmoidCrossEntropyFunction {
  MUSTER_INLINE float operator()(float x, float z) const {
    return (x < 0 ? 0 : x) - x * z +
           VectorLog1pOfPositive(VectorExp(-std::fabs(x)));
  }
};

template <template <typename, typename, typename> typename K, typename F>
void Register(KernelRegistry* registry, absl::string_view op, int input_count) {
  RegisterElementwise<K, float, float>(registry, op, input_count,
                                       [](const Attributes&) { return F(); });
}

template <template <typename, typename, typename> typename K, typename F>
void RegisterWithAlpha(KernelRegistry* registry, absl::string_view op,
                       int input_count) {
  RegisterElementwise<K, float, float>(
      registry, op, input_count, [](const Attributes& attributes) {
        return F{static_cast<float>(attributes.GetOr<double>("alpha", 0))};
      });
}

// Registers kernels that use Exact or Approximate, as the attribute
// "approximate" selects.
template <template <typename, typename, typename> typename K, typename Exact,
          typename Approximate>
void RegisterGelu(KernelRegistry* registry, absl::string_view op) {
  registry->Register(op,
                     [](const KernelSpec& spec,
                        int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                       if (spec.outputs[0].dtype != DType::kFloat32) {
                         return absl::UnimplementedError("float32 only");
                       }
                       if (spec.attributes.GetOr("approximate", false)) {
                         return std::make_unique<K<Approximate, float, float>>(
                             Approximate(), spec);
                       }
                       return std::make_unique<K<Exact, float, float>>(Exact(),
                                                                       spec);
                     });
}

}  // namespace

namespace internal {

void RegisterCpuActivationKernels(KernelRegistry* registry) {
  Register<UnaryKernel, ReluFunction>(registry, "Relu", 1);
  Register<UnaryKernel, Relu6Function>(registry, "Relu6", 1);
  Register<UnaryKernel, SigmoidFunction>(registry, "Sigmoid", 1);
  Register<UnaryKernel, TanhFunction>(registry, "Tanh", 1);
  Register<UnaryKernel, SoftplusFunction>(registry, "Softplus", 1);
  Register<UnaryKernel, SoftsignFunction>(registry, "Softsign", 1);
  RegisterWithAlpha<UnaryKernel, LeakyReluFunction>(registry, "LeakyRelu", 1);
  RegisterWithAlpha<UnaryKernel, EluFunction>(registry, "Elu", 1);
  RegisterGelu<UnaryKernel, GeluFunction, GeluTanhFunction>(registry, "Gelu");
  Register<BinaryKernel, ReluGradFunction>(registry, "ReluGrad", 2);
  Register<BinaryKernel, Relu6GradFunction>(registry, "Relu6Grad", 2);
  Register<BinaryKernel, SigmoidGradFunction>(registry, "SigmoidGrad", 2);
  Register<BinaryKernel, TanhGradFunction>(registry, "TanhGrad", 2);
  RegisterWithAlpha<BinaryKernel, LeakyReluGradFunction>(registry,
                                                         "LeakyReluGrad", 2);
  RegisterWithAlpha<BinaryKernel, EluGradFunction>(registry, "EluGrad", 2);
  RegisterGelu<BinaryKernel, GeluGradFunction, GeluTanhGradFunction>(
      registry, "GeluGrad");
  Register<BinaryKernel, SigmoidCrossEntropyFunction>(registry,
                                                      "SigmoidCrossEntropy", 2);
}

}  // namespace internal
}  // namespace muster
