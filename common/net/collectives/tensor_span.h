#ifndef COMMON_NET_COLLECTIVES_TENSOR_SPAN_H_
#define COMMON_NET_COLLECTIVES_TENSOR_SPAN_H_

#include <cstddef>
#include <cstdint>

#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Elements in borrowed memory, which collectives read and write. Collectives
// ignore shapes.
struct TensorSpan {
  DType dtype = DType::kInvalid;
  int64_t element_count = 0;
  void* data = nullptr;  // Aligned for dtype. May be null when empty.

  size_t size_bytes() const { return element_count * SizeOf(dtype); }
  uint8_t* bytes() const { return static_cast<uint8_t*>(data); }

  // Elements [begin, end).
  TensorSpan Part(int64_t begin, int64_t end) const {
    return {dtype, end - begin, bytes() + begin * SizeOf(dtype)};
  }
};

inline TensorSpan SpanOf(Tensor& tensor) {
  return {tensor.dtype(), tensor.element_count(), tensor.mutable_raw_data()};
}

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TENSOR_SPAN_H_
