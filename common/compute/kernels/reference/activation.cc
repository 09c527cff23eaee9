#include <algorithm>
#include <cmath>

#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register.h"

namespace muster::internal {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
constexpr double kGeluCubic = 0.044715;

double AlphaOf(const KernelSpec& spec) {
  return spec.attributes.GetOr<double>("alpha", 0);
}

// bind(spec) -> function(x) -> y
template <Supported kSupported, typename Bind>
void RegisterActivation(KernelRegistry* registry, absl::string_view op,
                        Bind bind) {
  RegisterReference(registry, op, [bind](const KernelSpec& spec) {
    const auto function = bind(spec);
    const auto make = [&]<typename T>() {
      return MakeKernel(
          [function](const KernelArguments& arguments) {
            const auto x = arguments.inputs[0]->flat<T>();
            const auto y = arguments.outputs[0]->mutable_flat<T>();
            for (size_t i = 0; i < x.size(); ++i) {
              y[i] = Narrow<T>(function(Widen(x[i])));
            }
            return absl::OkStatus();
          },
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
      return MakeKernel(
          [function](const KernelArguments& arguments) {
            const auto gradient = arguments.inputs[0]->flat<T>();
            const auto operand = arguments.inputs[1]->flat<T>();
            const auto out = arguments.outputs[0]->mutable_flat<T>();
            for (size_t i = 0; i < out.size(); ++i) {
              out[i] =
                  Narrow<T>(function(Widen(gradient[i]), Widen(operand[i])));
            }
            return absl::OkStatus();
          },
          ElementwiseSharing(spec));
    };
    return VisitSupported<kSupported>(spec.inputs[0].dtype, spec, make);
  });
}

// For functions that do not depend on the spec.
template <typename Function>
auto Plain(Function function) {
  return [function](const KernelSpec&) { return function; };
}

template <typename C>
C LogisticFunction(C x) {
  // exp() of a positive argument may overflow.
  const C e = std::exp(-std::abs(x));
  return (x >= 0 ? C{1} : e) / (1 + e);
}

double GeluTanhArgument(double x) {
  return kSqrtTwoOverPi * (x + kGeluCubic * x * x * x);
}

double GeluFunction(double x, bool approximate) {
  if (approximate) return 0.5 * x * (1 + std::tanh(GeluTanhArgument(x)));
  return 0.5 * x * std::erfc(-x * kSqrtHalf);
}

double GeluDerivative(double x, bool approximate) {
  if (!approximate) {
    return 0.5 * std::erfc(-x * kSqrtHalf) +
           x * kInvSqrtTwoPi * std::exp(-0.5 * x * x);
  }
  const double t = std::tanh(GeluTanhArgument(x));
  const double slope = kSqrtTwoOverPi * (1 + 3 * kGeluCubic * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
}

void RegisterRectifiers(KernelRegistry* registry) {
  constexpr Supported kNumber = Supported::kNumber;
  constexpr Supported kFloating = Supported::kFloating;
  RegisterActivation<kNumber>(registry, "Relu", Plain([](auto x) {
                                return x < 0 ? decltype(x){0} : x;
                              }));
  RegisterGradient<kNumber>(registry, "ReluGrad", Plain([](auto g, auto x) {
                              return x > 0 ? g : decltype(g){0};
                            }));
  RegisterActivation<kNumber>(registry, "Relu6", Plain([](auto x) {
                                using C = decltype(x);
                                return x < 0 ? C{0} : x > 6 ? C{6} : x;
                              }));
  RegisterGradient<kNumber>(registry, "Relu6Grad", Plain([](auto g, auto x) {
                              return x > 0 && x < 6 ? g : decltype(g){0};
                            }));
  RegisterActivation<kFloating>(
      registry, "LeakyRelu", [](const KernelSpec& spec) {
        return [alpha = AlphaOf(spec)](auto x) {
          return x > 0 ? x : static_cast<decltype(x)>(alpha) * x;
        };
      });
  RegisterGradient<kFloating>(
      registry, "LeakyReluGrad", [](const KernelSpec& spec) {
        return [alpha = AlphaOf(spec)](auto g, auto x) {
          return x > 0 ? g : static_cast<decltype(g)>(alpha) * g;
        };
      });
  RegisterActivation<kFloating>(registry, "Elu", [](const KernelSpec& spec) {
    return [alpha = AlphaOf(spec)](auto x) {
      return x < 0 ? static_cast<decltype(x)>(alpha) * std::expm1(x) : x;
    };
  });
  RegisterGradient<kFloating>(registry, "EluGrad", [](const KernelSpec& spec) {
    return [alpha = AlphaOf(spec)](auto g, auto x) {
      return x < 0 ? g * static_cast<decltype(g)>(alpha) * std::exp(x) : g;
    };
  });
}

void RegisterSmooth(KernelRegistry* registry) {
  constexpr Supported kFloating = Supported::kFloating;
  RegisterActivation<kFloating>(
      registry, "Sigmoid", Plain([](auto x) { return LogisticFunction(x); }));
  RegisterGradient<kFloating>(
      registry, "SigmoidGrad",
      Plain([](auto g, auto y) { return g * y * (1 - y); }));
  RegisterActivation<kFloating>(registry, "Tanh",
                                Plain([](auto x) { return std::tanh(x); }));
  RegisterGradient<kFloating>(registry, "TanhGrad", Plain([](auto g, auto y) {
                                return g * (1 - y * y);
                              }));
  RegisterActivation<kFloating>(registry, "Softplus", Plain([](auto x) {
                                  return (x > 0 ? x : 0) +
                                         std::log1p(std::exp(-std::abs(x)));
                                }));
  RegisterActivation<kFloating>(registry, "Softsign", Plain([](auto x) {
                                  return x / (1 + std::abs(x));
                                }));
  RegisterActivation<kFloating>(registry, "Gelu", [](const KernelSpec& spec) {
    const bool approximate = spec.attributes.GetOr("approximate", false);
    return [approximate](auto x) { return GeluFunction(x, approximate); };
  });
  RegisterGradient<kFloating>(registry, "GeluGrad", [](const KernelSpec& spec) {
    const bool approximate = spec.attributes.GetOr("approximate", false);
    return [approximate](auto g, auto x) {
      return g * GeluDerivative(x, approximate);
    };
  });
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

}  // namespace

void RegisterActivationKernels(KernelRegistry* registry) {
  RegisterRectifiers(registry);
  RegisterSmooth(registry);
  RegisterReference(registry, "Softmax", MakeSoftmax<false>);
  RegisterReference(registry, "LogSoftmax", MakeSoftmax<true>);
}

}  // namespace muster::internal
