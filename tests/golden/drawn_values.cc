#include "tests/golden/drawn_values.h"

#include "common/core/tensor/dtype.h"

namespace muster {

double Drawn(uint32_t key, int64_t index) {
  uint32_t x = static_cast<uint32_t>(index) + key * 1000003u;
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  x ^= x >> 16;
  return static_cast<double>(x >> 8) / (1 << 23) - 1;
}

Tensor DrawnTensor(uint32_t key, const Shape& shape, double offset,
                   double scale) {
  Tensor value(DType::kFloat32, shape);
  int64_t i = 0;
  for (float& element : value.mutable_flat<float>()) {
    element = static_cast<float>(offset + scale * Drawn(key, i++));
  }
  return value;
}

}  // namespace muster
