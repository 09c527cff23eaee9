#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_SCALE_ELEMENTS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_SCALE_ELEMENTS_H_

#include <cstdint>

#include "common/core/tensor/dtype.h"

namespace muster {

// Multiplies `count` elements at `elements` by `factor`. Integers are divided
// by the integer nearest to 1 / factor, rounding towards zero; bool is
// unchanged. `dtype` is a number type or bool.
void ScaleElements(DType dtype, double factor, int64_t count, void* elements);

// to[i] = from[i] * factor, for float32 and float64. `from` and `to` do not
// overlap. A factor of 0 yields zeros for any content of `from`, which may then
// be null.
void CopyScaled(DType dtype, const void* from, double factor, int64_t count,
                void* to);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_SCALE_ELEMENTS_H_
