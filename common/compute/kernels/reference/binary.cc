#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register.h"
#include "common/compute/kernels/reference/strided_index.h"

namespace muster::internal {
namespace {

// Returns an error message for two operands; null if they are valid.
struct NothingIsWrong {
  template <typename C>
  const char* operator()(C, C) const {
    return nullptr;
  }
};

struct NoIntegerZeroDivisor {
  template <typename C>
  const char* operator()(C, C b) const {
    return std::is_integral_v<C> && b == 0 ? "integer division by zero"
                                           : nullptr;
  }
};

struct NoNegativeIntegerExponent {
  template <typename C>
  const char* operator()(C, C b) const {
    return std::is_integral_v<C> && b < 0
               ? "an integer to the power of a negative integer"
               : nullptr;
  }
};

// y = function(a, b) with broadcasting, of type Out.
template <typename T, typename Out, typename Function, typename Check>
KernelOr MakeBinary(const KernelSpec& spec, Function function, Check check) {
  const Shape& shape = spec.outputs[0].shape;
  return MakeKernel(
      [function, check, index_a = BroadcastIndex(spec.inputs[0].shape, shape),
       index_b = BroadcastIndex(spec.inputs[1].shape, shape)](
          const KernelArguments& arguments) {
        const auto a = arguments.inputs[0]->flat<T>();
        const auto b = arguments.inputs[1]->flat<T>();
        const auto y = arguments.outputs[0]->mutable_flat<Out>();
        for (size_t i = 0; i < y.size(); ++i) {
          const auto element_a = Widen(a[index_a(i)]);
          const auto element_b = Widen(b[index_b(i)]);
          const char* fault = check(element_a, element_b);
          if (fault != nullptr) {
            return absl::InvalidArgumentError(
                absl::StrCat(fault, ", at element ", i));
          }
          y[i] = Narrow<Out>(function(element_a, element_b));
        }
        return absl::OkStatus();
      },
      ElementwiseSharing(spec));
}

template <typename Function, typename Check = NothingIsWrong>
void RegisterBinary(KernelRegistry* registry, absl::string_view op,
                    Function function, Check check = {}) {
  RegisterReference(registry, op, [function, check](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeBinary<T, T>(spec, function, check);
    };
    return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
  });
}

template <Supported kSupported, typename Function>
void RegisterComparison(KernelRegistry* registry, absl::string_view op,
                        Function function) {
  RegisterReference(registry, op, [function](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeBinary<T, bool>(spec, function, NothingIsWrong());
    };
    return VisitSupported<kSupported>(spec.inputs[0].dtype, spec, make);
  });
}

template <typename Function>
void RegisterLogic(KernelRegistry* registry, absl::string_view op,
                   Function function) {
  RegisterReference(registry, op, [function](const KernelSpec& spec) {
    if (spec.inputs[0].dtype != DType::kBool) {
      return KernelOr(UnsupportedTypes(spec));
    }
    return MakeBinary<bool, bool>(spec, function, NothingIsWrong());
  });
}

template <typename C>
C Divide(C a, C b) {
  if constexpr (std::is_integral_v<C> && std::is_signed_v<C>) {
    // The lowest integer divided by -1 overflows, which traps.
    if (b == -1) return WrappingSub(C{0}, a);
  }
  return a / b;
}

template <typename C>
C Modulo(C a, C b) {
  C remainder;
  if constexpr (std::is_integral_v<C>) {
    if constexpr (std::is_signed_v<C>) {
      if (b == -1) return 0;
    }
    remainder = a % b;
  } else {
    remainder = std::fmod(a, b);
  }
  return remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b
                                                      : remainder;
}

template <typename C>
C FloorDivide(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    const C quotient = Divide(a, b);
    const bool is_exact = WrappingMul(quotient, b) == a;
    return !is_exact && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  } else {
    return std::floor(a / b);
  }
}

template <typename C>
C Power(C base, C exponent) {
  if constexpr (std::is_integral_v<C>) {
    C power = 1;
    for (; exponent > 0; exponent >>= 1) {
      if (exponent & 1) power = WrappingMul(power, base);
      base = WrappingMul(base, base);
    }
    return power;
  } else {
    return std::pow(base, exponent);
  }
}

void RegisterArithmetic(KernelRegistry* registry) {
  const auto add = [registry](absl::string_view op, auto function) {
    RegisterBinary(registry, op, function);
  };
  add("Add", [](auto a, auto b) { return WrappingAdd(a, b); });
  add("Sub", [](auto a, auto b) { return WrappingSub(a, b); });
  add("Mul", [](auto a, auto b) { return WrappingMul(a, b); });
  add("SquaredDifference", [](auto a, auto b) {
    const auto difference = WrappingSub(a, b);
    return WrappingMul(difference, difference);
  });
  // a != a: NaN if either operand is NaN.
  add("Maximum", [](auto a, auto b) { return a > b || a != a ? a : b; });
  add("Minimum", [](auto a, auto b) { return a < b || a != a ? a : b; });
  RegisterBinary(
      registry, "Div", [](auto a, auto b) { return Divide(a, b); },
      NoIntegerZeroDivisor());
  RegisterBinary(
      registry, "FloorDiv", [](auto a, auto b) { return FloorDivide(a, b); },
      NoIntegerZeroDivisor());
  RegisterBinary(
      registry, "Mod", [](auto a, auto b) { return Modulo(a, b); },
      NoIntegerZeroDivisor());
  RegisterBinary(
      registry, "Pow", [](auto a, auto b) { return Power(a, b); },
      NoNegativeIntegerExponent());
}

void RegisterComparisons(KernelRegistry* registry) {
  const auto add_equality = [registry](absl::string_view op, auto function) {
    RegisterComparison<Supported::kNumberOrBool>(registry, op, function);
  };
  const auto add_order = [registry](absl::string_view op, auto function) {
    RegisterComparison<Supported::kNumber>(registry, op, function);
  };
  add_equality("Equal", [](auto a, auto b) { return a == b; });
  add_equality("NotEqual", [](auto a, auto b) { return a != b; });
  add_order("Less", [](auto a, auto b) { return a < b; });
  add_order("LessEqual", [](auto a, auto b) { return a <= b; });
  add_order("Greater", [](auto a, auto b) { return a > b; });
  add_order("GreaterEqual", [](auto a, auto b) { return a >= b; });
  RegisterLogic(registry, "LogicalAnd", [](bool a, bool b) { return a && b; });
  RegisterLogic(registry, "LogicalOr", [](bool a, bool b) { return a || b; });
}

KernelOr MakeSelect(const KernelSpec& spec) {
  const auto make = [&]<typename T>() {
    const Shape& shape = spec.outputs[0].shape;
    return MakeKernel(
        [index_condition = BroadcastIndex(spec.inputs[0].shape, shape),
         index_a = BroadcastIndex(spec.inputs[1].shape, shape),
         index_b = BroadcastIndex(spec.inputs[2].shape, shape)](
            const KernelArguments& arguments) {
          const auto condition = arguments.inputs[0]->flat<bool>();
          const auto a = arguments.inputs[1]->flat<T>();
          const auto b = arguments.inputs[2]->flat<T>();
          const auto y = arguments.outputs[0]->mutable_flat<T>();
          for (size_t i = 0; i < y.size(); ++i) {
            y[i] =
                condition[index_condition(i)] ? a[index_a(i)] : b[index_b(i)];
          }
          return absl::OkStatus();
        },
        ElementwiseSharing(spec));
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.inputs[1].dtype, spec,
                                                  make);
}

}  // namespace

void RegisterBinaryKernels(KernelRegistry* registry) {
  RegisterArithmetic(registry);
  RegisterComparisons(registry);
  RegisterReference(registry, "Select", MakeSelect);
}

}  // namespace muster::internal
