#include <cmath>
#include <limits>

#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register.h"

namespace muster::internal {
namespace {

// function(x) -> y, both of the type in which elements are computed.
template <Supported kSupported, typename Function>
void RegisterUnary(KernelRegistry* registry, absl::string_view op,
                   Function function) {
  RegisterReference(registry, op, [function](const KernelSpec& spec) {
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

// function(x) -> bool
template <typename Function>
void RegisterTest(KernelRegistry* registry, absl::string_view op,
                  Function function) {
  RegisterReference(registry, op, [function](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeKernel([function](const KernelArguments& arguments) {
        const auto x = arguments.inputs[0]->flat<T>();
        const auto y = arguments.outputs[0]->mutable_flat<bool>();
        for (size_t i = 0; i < x.size(); ++i) y[i] = function(Widen(x[i]));
        return absl::OkStatus();
      });
    };
    return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec,
                                                make);
  });
}

// Truncates. Values out of range become the nearest value, NaN becomes 0.
template <typename To, typename From>
To Convert(From from) {
  const auto value = Widen(from);
  if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<To> && kIsFloating<From>) {
    const double bound = std::ldexp(1.0, std::numeric_limits<To>::digits);
    if (std::isnan(value)) return 0;
    if (value >= bound) return std::numeric_limits<To>::max();
    const double lowest = std::is_signed_v<To> ? -bound : 0;
    if (value <= lowest) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    return Narrow<To>(value);
  }
}

KernelOr MakeCast(const KernelSpec& spec) {
  const auto make_from = [&]<typename From>() {
    const auto make_to = [&]<typename To>() {
      return MakeKernel(
          [](const KernelArguments& arguments) {
            const auto x = arguments.inputs[0]->flat<From>();
            const auto y = arguments.outputs[0]->mutable_flat<To>();
            for (size_t i = 0; i < x.size(); ++i) y[i] = Convert<To>(x[i]);
            return absl::OkStatus();
          },
          ElementwiseSharing(spec));
    };
    return VisitSupported<Supported::kNumberOrBool>(spec.outputs[0].dtype, spec,
                                                    make_to);
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.inputs[0].dtype, spec,
                                                  make_from);
}

KernelOr MakeLogicalNot(const KernelSpec& spec) {
  if (spec.inputs[0].dtype != DType::kBool) return UnsupportedTypes(spec);
  return MakeKernel(
      [](const KernelArguments& arguments) {
        const auto x = arguments.inputs[0]->flat<bool>();
        const auto y = arguments.outputs[0]->mutable_flat<bool>();
        for (size_t i = 0; i < x.size(); ++i) y[i] = !x[i];
        return absl::OkStatus();
      },
      ElementwiseSharing(spec));
}

void RegisterOfNumbers(KernelRegistry* registry) {
  constexpr Supported kNumber = Supported::kNumber;
  RegisterUnary<kNumber>(registry, "Neg", [](auto x) {
    // 0 - x would lose the sign of a zero.
    if constexpr (std::is_integral_v<decltype(x)>) {
      return WrappingSub(decltype(x){0}, x);
    } else {
      return -x;
    }
  });
  RegisterUnary<kNumber>(registry, "Abs", [](auto x) {
    if constexpr (std::is_integral_v<decltype(x)>) {
      return x < 0 ? WrappingSub(decltype(x){0}, x) : x;
    } else {
      return std::abs(x);
    }
  });
  RegisterUnary<kNumber>(registry, "Sign", [](auto x) {
    using C = decltype(x);
    return x > 0 ? C{1} : x < 0 ? static_cast<C>(-1) : x;
  });
  RegisterUnary<kNumber>(registry, "Square",
                         [](auto x) { return WrappingMul(x, x); });
}

void RegisterOfFloats(KernelRegistry* registry) {
  constexpr Supported kFloating = Supported::kFloating;
  const auto add = [registry](absl::string_view op, auto function) {
    RegisterUnary<kFloating>(registry, op, function);
  };
  add("Sqrt", [](auto x) { return std::sqrt(x); });
  add("Rsqrt", [](auto x) { return 1 / std::sqrt(x); });
  add("Reciprocal", [](auto x) { return 1 / x; });
  add("Exp", [](auto x) { return std::exp(x); });
  add("Expm1", [](auto x) { return std::expm1(x); });
  add("Log", [](auto x) { return std::log(x); });
  add("Log1p", [](auto x) { return std::log1p(x); });
  add("Sin", [](auto x) { return std::sin(x); });
  add("Cos", [](auto x) { return std::cos(x); });
  add("Erf", [](auto x) { return std::erf(x); });
  add("Floor", [](auto x) { return std::floor(x); });
  add("Ceil", [](auto x) { return std::ceil(x); });
  // Rounds halves to even, the default rounding mode of threads.
  add("Round", [](auto x) { return std::nearbyint(x); });
}

}  // namespace

void RegisterUnaryKernels(KernelRegistry* registry) {
  RegisterOfNumbers(registry);
  RegisterOfFloats(registry);
  RegisterTest(registry, "IsNan", [](auto x) { return std::isnan(x); });
  RegisterTest(registry, "IsFinite", [](auto x) { return std::isfinite(x); });
  RegisterReference(registry, "LogicalNot", MakeLogicalNot);
  RegisterReference(registry, "Cast", MakeCast);
}

}  // namespace muster::internal
