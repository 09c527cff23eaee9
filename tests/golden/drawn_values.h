#ifndef TESTS_GOLDEN_DRAWN_VALUES_H_
#define TESTS_GOLDEN_DRAWN_VALUES_H_

#include <cstdint>

#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Returns a pseudorandom number in [-1, 1): drawn() in cases/mobilenet_v2.py.
// Golden cases draw the weights of large models, so that they need not be
// stored.
double Drawn(uint32_t key, int64_t index);

// Returns a float32 tensor with elements offset + scale * Drawn(key, i).
Tensor DrawnTensor(uint32_t key, const Shape& shape, double offset = 0,
                   double scale = 1);

// The key of images.
inline constexpr uint32_t kDrawnImages = 1000;

}  // namespace muster

#endif  // TESTS_GOLDEN_DRAWN_VALUES_H_
