#include <algorithm>
#include <cmath>
#include <type_traits>

#include "common/compute/functions/activation_functions.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"

namespace muster::internal {
namespace {

template <typename T, typename Function>
absl::Status RunActivation(const Function& function,
                           const KernelArguments& arguments) {
  const auto x = arguments.inputs[0]->flat<T>();
  const auto y = arguments.outputs[0]->mutable_flat<T>();
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = Narrow<T>(function(Widen(x[i])));
  }
  return absl::OkStatus();
}

template <typename T, typename Function>
absl::Status RunGradient(const Function& function,
                         const KernelArguments& arguments) {
  const auto gradient = arguments.inputs[0]->flat<T>();
  const auto operand = arguments.inputs[1]->flat<T>();
  const auto out = arguments.outputs[0]->mutable_flat<T>();
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = Narrow<T>(function(Widen(gradient[i]), Widen(operand[i])));
  }
  return absl::OkStatus();
}

// bind(spec) -> function(x) -> y
template <Supported kSupported, typename Bind>
void RegisterActivation(KernelRegistry* registry, absl::string_view op,
                        Bind bind) {
  RegisterReference(registry, op, [bind](const KernelSpec& spec) {
    const auto function = bind(spec);
    const auto make = [&]<typename T>() {
      return MakeKernel(function,
                        RunActivation<T, std::decay_t<decltype(function)>>,
                        ElementwiseSharing(spec));
    };
    return VisitSupported<kSupported>(spec.inputs[0].dtype, spec, make);
  });
}

// bind(spec) -> function(gradient of y, x or y) -> gradient of x
template <Supported kSupported, typename Bind>
void RegisterGradient(KernelRegistry* registry, absl::string_view op,
                      Bind bind) {
  RegisterReference(registry, op, [bind](const KernelSpec& spec) {
    const auto function = bind(spec);
    const auto make = [&]<typename T>() {
      return MakeKernel(function,
                        RunGradient<T, std::decay_t<decltype(function)>>,
                        ElementwiseSharing(spec));
    };
    return VisitSupported<kSupported>(spec.inputs[0].dtype, spec, make);
  });
}

// Wraps a function that does not depend on the spec.
template <typename Function>
auto Plain(Function function) {
  return [function](const KernelSpec&) { return function; };
}

// Creates a function with the attribute alpha.
template <typename Function>
Function WithAlpha(const KernelSpec& spec) {
  return {spec.attributes.GetOr<double>("alpha", 0)};
}

// Wraps a function with an exact and an approximate form; computes either in
// double precision.
template <typename Exact, typename Approximate>
auto InDouble(const KernelSpec& spec) {
  const bool is_approximate = spec.attributes.GetOr("approximate", false);
  return [is_approximate](auto... operands) {
    return is_approximate ? Approximate()(static_cast<double>(operands)...)
                          : Exact()(static_cast<double>(operands)...);
  };
}

void RegisterFunctions(KernelRegistry* registry) {
  constexpr Supported kNumber = Supported::kNumber;
  constexpr Supported kFloating = Supported::kFloating;
#define MUSTER_REGISTER(name) \
  RegisterActivation<kNumber>(registry, #name, Plain(functions::name()));
  MUSTER_RECTIFIER_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) \
  RegisterGradient<kNumber>(registry, #name, Plain(functions::name()));
  MUSTER_RECTIFIER_GRADIENTS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) \
  RegisterActivation<kFloating>(registry, #name, WithAlpha<functions::name>);
  MUSTER_ALPHA_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) \
  RegisterGradient<kFloating>(registry, #name, WithAlpha<functions::name>);
  MUSTER_ALPHA_GRADIENTS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) \
  RegisterActivation<kFloating>(registry, #name, Plain(functions::name()));
  MUSTER_SMOOTH_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) \
  RegisterGradient<kFloating>(registry, #name, Plain(functions::name()));
  MUSTER_SMOOTH_GRADIENTS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
  RegisterActivation<kFloating>(registry, "Gelu",
                                InDouble<functions::Gelu, functions::GeluTanh>);
  RegisterGradient<kFloating>(
      registry, "GeluGrad",
      InDouble<functions::GeluGrad, functions::GeluTanhGrad>);
}

// Softmax over the last axis, or its logarithm.
template <bool kLogarithm>
KernelOr MakeSoftmax(const KernelSpec& spec) {
  const Shape& shape = spec.inputs[0].shape;
  const int64_t class_count = shape.dim(shape.rank() - 1);
  const auto make = [&]<typename T>() {
    const auto run = [class_count](const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      for (size_t row = 0; row < x.size(); row += class_count) {
        double max = Widen(x[row]);
        for (int64_t c = 1; c < class_count; ++c) {
          max = std::max<double>(max, Widen(x[row + c]));
        }
        double sum = 0;
        for (int64_t c = 0; c < class_count; ++c) {
          sum += std::exp(Widen(x[row + c]) - max);
        }
        for (int64_t c = 0; c < class_count; ++c) {
          const double shifted = Widen(x[row + c]) - max;
          y[row + c] = Narrow<T>(kLogarithm ? shifted - std::log(sum)
                                            : std::exp(shifted) / sum);
        }
      }
      return absl::OkStatus();
    };
    return MakeKernel(run, ElementwiseSharing(spec));
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

// (gradient - sum(gradient * y)) * y over the last axis.
KernelOr MakeSoftmaxGrad(const KernelSpec& spec) {
  const Shape& shape = spec.inputs[0].shape;
  const int64_t class_count = shape.dim(shape.rank() - 1);
  const auto make = [&]<typename T>() {
    const auto run = [class_count](const KernelArguments& arguments) {
      const auto gradient = arguments.inputs[0]->flat<T>();
      const auto y = arguments.inputs[1]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      for (size_t row = 0; row < y.size(); row += class_count) {
        double sum = 0;
        for (int64_t c = 0; c < class_count; ++c) {
          sum += double{Widen(gradient[row + c])} * Widen(y[row + c]);
        }
        for (int64_t c = 0; c < class_count; ++c) {
          out[row + c] =
              Narrow<T>((Widen(gradient[row + c]) - sum) * Widen(y[row + c]));
        }
      }
      return absl::OkStatus();
    };
    return MakeKernel(run, ElementwiseSharing(spec));
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

}  // namespace

void RegisterActivationKernels(KernelRegistry* registry) {
  RegisterFunctions(registry);
  RegisterReference(registry, "Softmax", MakeSoftmax<false>);
  RegisterReference(registry, "LogSoftmax", MakeSoftmax<true>);
  RegisterReference(registry, "SoftmaxGrad", MakeSoftmaxGrad);
}

}  // namespace muster::internal
