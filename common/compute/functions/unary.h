#ifndef COMMON_COMPUTE_FUNCTIONS_UNARY_H_
#define COMMON_COMPUTE_FUNCTIONS_UNARY_H_

#include "common/compute/functions/numbers.h"

// Compute one element of the unary ops, as in binary.h.
namespace muster::functions {

// Lists of the ops: those on all numbers, on floating-point numbers, and those
// that return a bool.
#define MUSTER_UNARY_NUMBER_FUNCTIONS(F) F(Neg) F(Abs) F(Sign) F(Square)
#define MUSTER_UNARY_FLOAT_FUNCTIONS(F) \
  F(Sqrt)                               \
  F(Rsqrt)                              \
  F(Reciprocal)                         \
  F(Exp)                                \
  F(Expm1)                              \
  F(Log) F(Log1p) F(Sin) F(Cos) F(Erf) F(Floor) F(Ceil) F(Round)
#define MUSTER_FLOAT_TEST_FUNCTIONS(F) F(IsNan) F(IsFinite)

struct Neg {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    // 0 - x would lose the sign of a zero.
    if constexpr (kIsInteger<C>) {
      return WrappingSub(C{0}, x);
    } else {
      return -x;
    }
  }
};

struct Abs {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    if constexpr (kIsInteger<C>) {
      return x < 0 ? WrappingSub(C{0}, x) : x;
    } else {
      return fabs(x);
    }
  }
};

struct Sign {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x > 0 ? C{1} : x < 0 ? static_cast<C>(-1) : x;
  }
};

struct Square {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return WrappingMul(x, x);
  }
};

struct Sqrt {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return sqrt(x);
  }
};

struct Rsqrt {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return 1 / sqrt(x);
  }
};

struct Reciprocal {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return 1 / x;
  }
};

struct Exp {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return exp(x);
  }
};

struct Expm1 {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return expm1(x);
  }
};

struct Log {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return log(x);
  }
};

struct Log1p {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return log1p(x);
  }
};

struct Sin {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return sin(x);
  }
};

struct Cos {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return cos(x);
  }
};

struct Erf {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return erf(x);
  }
};

struct Floor {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return floor(x);
  }
};

struct Ceil {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return ceil(x);
  }
};

// Rounds halves to even, the default rounding mode of threads.
struct Round {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return nearbyint(x);
  }
};

struct IsNan {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C x) const {
    return IsNanNumber(x);
  }
};

struct IsFinite {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C x) const {
    // x - x is NaN for infinities and NaN.
    return x - x == 0;
  }
};

struct LogicalNot {
  template <typename C>
  MUSTER_HOST_DEVICE bool operator()(C x) const {
    return x == C(0);
  }
};

}  // namespace muster::functions

#endif  // COMMON_COMPUTE_FUNCTIONS_UNARY_H_
