#ifndef COMMON_COMPUTE_FUNCTIONS_BINARY_H_
#define COMMON_COMPUTE_FUNCTIONS_BINARY_H_

#include "common/compute/functions/numbers.h"

// Compute one element of the binary ops. Each op is a struct with its name.
// Host and device kernels compute with the same structs. C is the type in which
// an element is computed: float, double or an integer.
namespace muster::functions {

// Lists of the ops: those on numbers, and those that return a bool.
#define MUSTER_BINARY_FUNCTIONS(F) \
  F(Add)                           \
  F(Sub)                           \
  F(Mul)                           \
  F(SquaredDifference) F(Maximum) F(Minimum) F(Div) F(FloorDiv) F(Mod) F(Pow)
#define MUSTER_EQUALITY_FUNCTIONS(F) F(Equal) F(NotEqual)
#define MUSTER_ORDER_FUNCTIONS(F) \
  F(Less) F(LessEqual) F(Greater) F(GreaterEqual)
#define MUSTER_LOGIC_FUNCTIONS(F) F(LogicalAnd) F(LogicalOr)

struct Add {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C a, C b) const {
    return WrappingAdd(a, b);
  }
};

struct Sub {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C a, C b) const {
    return WrappingSub(a, b);
  }
};

struct Mul {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C a, C b) const {
    return WrappingMul(a, b);
  }
};

struct SquaredDifference {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C a, C b) const {
    const C difference = WrappingSub(a, b);
    return WrappingMul(difference, difference);
  }
};

// Returns NaN if either operand is NaN.
struct Maximum {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C a, C b) const {
    return a > b || IsNanNumber(a) ? a : b;
  }
};
struct Minimum {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C a, C b) const {
    return a < b || IsNanNumber(a) ? a : b;
  }
};

// Div, FloorDiv and Mod require that an integer `b` is not 0.
struct Div {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C a, C b) const {
    if constexpr (kIsInteger<C> && kIsSigned<C>) {
      // The lowest integer divided by -1 overflows, which traps.
      if (b == -1) return WrappingSub(C{0}, a);
    }
    return a / b;
  }
};

struct FloorDiv {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C a, C b) const {
    if constexpr (kIsInteger<C>) {
      const C quotient = Div()(a, b);
      const bool is_exact = WrappingMul(quotient, b) == a;
      return !is_exact && (a < 0) != (b < 0) ? quotient - 1 : quotient;
    } else {
      return floor(a / b);
    }
  }
};

struct Mod {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C a, C b) const {
    C remainder;
    if constexpr (kIsInteger<C>) {
      if constexpr (kIsSigned<C>) {
        if (b == -1) return 0;
      }
      remainder = a % b;
    } else {
      remainder = fmod(a, b);
    }
    return remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b
                                                        : remainder;
  }
};

// Requires that an integer exponent is not negative.
struct Pow {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C base, C exponent) const {
    if constexpr (kIsInteger<C>) {
      C power = 1;
      for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) power = WrappingMul(power, base);
        base = WrappingMul(base, base);
      }
      return power;
    } else {
      return pow(base, exponent);
    }
  }
};

// True if the op is defined for an integer right operand `b`.
template <typename Function, typename C>
MUSTER_HOST_DEVICE bool IsDefined(const Function&, C b) {
  if constexpr (!kIsInteger<C>) {
    return true;
  } else if constexpr (kIsSame<Function, Div> || kIsSame<Function, FloorDiv> ||
                       kIsSame<Function, Mod>) {
    return b != 0;
  } else if constexpr (kIsSame<Function, Pow>) {
    return b >= 0;
  } else {
    return true;
  }
}

struct Equal {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C a, C b) const {
    return a == b;
  }
};

struct NotEqual {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C a, C b) const {
    return a != b;
  }
};

struct Less {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C a, C b) const {
    return a < b;
  }
};

struct LessEqual {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C a, C b) const {
    return a <= b;
  }
};

struct Greater {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C a, C b) const {
    return a > b;
  }
};

struct GreaterEqual {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C a, C b) const {
    return a >= b;
  }
};

struct LogicalAnd {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C a, C b) const {
    return a != 0 && b != 0;
  }
};

struct LogicalOr {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C a, C b) const {
    return a != 0 || b != 0;
  }
};

}  // namespace muster::functions

#endif  // COMMON_COMPUTE_FUNCTIONS_BINARY_H_
