#ifndef COMMON_CORE_TENSOR_TENSOR_H_
#define COMMON_CORE_TENSOR_TENSOR_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/core/base/check.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/place.h"
#include "common/core/tensor/shape.h"

namespace muster {

// The dtype and shape of a tensor, without its data.
struct TensorType {
  DType dtype = DType::kInvalid;
  Shape shape;

  bool operator==(const TensorType&) const = default;
  std::string ToString() const;  // "float32[2,3]"
};

// A dense, row-major array. Copies share the memory: a Tensor is a handle. Call
// Clone() before writing if another handle may read the memory.
//
// The memory belongs to the host or to a device (place()). Functions that read
// or write elements on the host terminate the process if the memory belongs to
// a device. DeviceStream::Copy() copies elements between places.
//
// Thread-compatible; the reference count is thread-safe.
class Tensor {
 public:
  Tensor() = default;  // Invalid: no dtype, no data.

  // Allocates uninitialized memory; strings are empty. `shape` is fully known.
  Tensor(DType dtype, Shape shape);

  // A view of `buffer` from `offset_bytes` on, which must be aligned for
  // `dtype` and large enough. Not for kString.
  Tensor(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer,
         size_t offset_bytes = 0);

  static Tensor Zeros(DType dtype, const Shape& shape);

  // Every element is `value`, converted to `dtype`.
  static Tensor Full(DType dtype, const Shape& shape, double value);

  template <typename T>
  static Tensor Scalar(T value) {
    return FromSpan<T>(Shape(), absl::MakeConstSpan(&value, 1));
  }
  template <typename T>
  static Tensor FromSpan(const Shape& shape, absl::Span<const T> values);
  template <typename T>
  static Tensor FromValues(const Shape& shape,
                           std::initializer_list<T> values) {
    return FromSpan<T>(shape,
                       absl::MakeConstSpan(values.begin(), values.size()));
  }

  bool IsValid() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  TensorType type() const { return {dtype_, shape_}; }
  int64_t element_count() const { return element_count_; }
  size_t size_bytes() const { return element_count_ * SizeOf(dtype_); }

  Place place() const {
    return buffer_ == nullptr ? Place() : buffer_->place();
  }
  bool is_on_host() const { return is_on_host_; }
  // The address of element 0 at place(), for device work. Null if there is no
  // memory.
  uint8_t* address() const { return data_; }

  const uint8_t* raw_data() const {
    MUSTER_CHECK(is_on_host_);
    return data_;
  }
  uint8_t* mutable_raw_data() {
    MUSTER_CHECK(is_on_host_);
    return data_;
  }

  // T must be the C++ type of dtype().
  template <typename T>
  absl::Span<const T> flat() const {
    MUSTER_CHECK(dtype_ == DTypeOf<T>() && is_on_host_);
    return absl::MakeConstSpan(reinterpret_cast<const T*>(data_),
                               element_count_);
  }
  template <typename T>
  absl::Span<T> mutable_flat() {
    MUSTER_CHECK(dtype_ == DTypeOf<T>() && is_on_host_);
    return absl::MakeSpan(reinterpret_cast<T*>(data_), element_count_);
  }
  // The only element.
  template <typename T>
  T scalar() const {
    MUSTER_CHECK(element_count_ == 1);
    return flat<T>()[0];
  }
  // Converts element `index` of any numeric dtype.
  double ElementAsDouble(int64_t index) const;

  // Shares the memory. `shape` has the same number of elements.
  Tensor Reshaped(Shape shape) const;
  // Rows [begin, end) of the outermost dimension; shares the memory.
  Tensor SliceRows(int64_t begin, int64_t end) const;
  Tensor Clone() const;  // For tensors on the host.

  // True if no other handle refers to the memory. In that case, all accesses
  // that other threads made through dropped handles happened before this call.
  bool IsSoleOwner() const {
    if (buffer_.use_count() != 1) return false;
    // use_count() does not order memory accesses; dropping a second reference
    // does.
    std::shared_ptr<Buffer>(buffer_).reset();
    return true;
  }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  // "float32[2,2] {1, 2, 3, 4}", truncated after a few elements: for errors and
  // for graphs in text form. Of a device's memory: "float32[2,2] on a device".
  std::string DebugString() const;

 private:
  DType dtype_ = DType::kInvalid;
  bool is_on_host_ = true;  // Cached: checks need not read buffer_.
  Shape shape_;
  int64_t element_count_ = 0;
  std::shared_ptr<Buffer> buffer_;
  uint8_t* data_ = nullptr;  // Into buffer_.
};

// Prints the type and the elements, one bracket for each dimension, as NumPy
// does: "float32[2,2] [[1, 2],\n [3, 4]]". If the tensor has more than 1,000
// elements, prints only the first three and the last three of each dimension.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// True if dtype, shape and bytes are equal; a NaN equals the same NaN.
bool BitwiseEqual(const Tensor& a, const Tensor& b);

template <typename T>
Tensor Tensor::FromSpan(const Shape& shape, absl::Span<const T> values) {
  Tensor tensor(DTypeOf<T>(), shape);
  MUSTER_CHECK(static_cast<size_t>(tensor.element_count()) == values.size());
  std::copy(values.begin(), values.end(), tensor.mutable_flat<T>().begin());
  return tensor;
}

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_TENSOR_H_
