#include "common/core/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int64_t kPrintedElementsMax = 1000;
constexpr int64_t kPrintedEdge = 3;

void PrintElement(std::ostream& out, const Tensor& tensor, int64_t index) {
  switch (tensor.dtype()) {
    case DType::kString:
      out << '"' << absl::CHexEscape(tensor.flat<std::string>()[index]) << '"';
      break;
    case DType::kBool:
      out << (tensor.flat<bool>()[index] ? "true" : "false");
      break;
    case DType::kInt64:  // A double cannot represent all values.
      out << tensor.flat<int64_t>()[index];
      break;
    default:
      out << absl::StrCat(tensor.ElementAsDouble(index));
  }
}

// Prints `element_count` elements from `first_element` on: those that have the
// same indices in the dimensions before `dim`.
void PrintDimension(std::ostream& out, const Tensor& tensor, int dim,
                    int64_t first_element, int64_t element_count) {
  const int rank = tensor.shape().rank();
  if (dim == rank) {
    PrintElement(out, tensor, first_element);
    return;
  }
  const int64_t extent = tensor.shape().dim(dim);
  const int64_t stride = extent > 0 ? element_count / extent : 0;
  const bool is_summary =
      tensor.element_count() > kPrintedElementsMax && extent > 2 * kPrintedEdge;
  // As in NumPy: a line for each row, a blank line between matrices, and so on.
  const std::string separator =
      dim + 1 == rank ? ", "
                      : absl::StrCat(",", std::string(rank - dim - 1, '\n'),
                                     std::string(dim + 1, ' '));
  out << "[";
  for (int64_t i = 0; i < extent; ++i) {
    if (i > 0) out << separator;
    if (is_summary && i == kPrintedEdge) {
      out << "..." << separator;
      i = extent - kPrintedEdge;
    }
    PrintDimension(out, tensor, dim + 1, first_element + i * stride, stride);
  }
  out << "]";
}

}  // namespace
namespace {

// Strings are objects: the buffer owns the vector that contains them.
std::shared_ptr<Buffer> AllocateStrings(int64_t count) {
  auto strings = std::make_shared<std::vector<std::string>>(count);
  void* data = strings->data();
  return Buffer::Wrap(data, count * sizeof(std::string), [strings] {});
}

}  // namespace

std::string TensorType::ToString() const {
  return absl::StrCat(DTypeName(dtype), shape.ToString());
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      element_count_(shape_.element_count()) {
  MUSTER_CHECK(dtype != DType::kInvalid);
  buffer_ = dtype == DType::kString
                ? AllocateStrings(element_count_)
                : Buffer::Allocate(element_count_ * SizeOf(dtype));
  data_ = buffer_->data();
}

Tensor::Tensor(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer,
               size_t offset_bytes)
    : dtype_(dtype),
      is_on_host_(buffer->place().is_host()),
      shape_(std::move(shape)),
      element_count_(shape_.element_count()),
      buffer_(std::move(buffer)),
      data_(buffer_->data() + offset_bytes) {
  MUSTER_CHECK(dtype != DType::kInvalid && dtype != DType::kString);
  MUSTER_CHECK(offset_bytes + size_bytes() <= buffer_->size_bytes());
}

Tensor Tensor::Zeros(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  if (dtype != DType::kString) {
    std::memset(tensor.data_, 0, tensor.size_bytes());
  }
  return tensor;
}

Tensor Tensor::Full(DType dtype, const Shape& shape, double value) {
  Tensor tensor(dtype, shape);
  VisitNumber(dtype, [&]<typename T>() {
    const auto flat = tensor.mutable_flat<T>();
    if constexpr (std::is_arithmetic_v<T>) {
      std::fill(flat.begin(), flat.end(), static_cast<T>(value));
    } else {
      std::fill(flat.begin(), flat.end(), T(static_cast<float>(value)));
    }
  });
  return tensor;
}

double Tensor::ElementAsDouble(int64_t index) const {
  return VisitNumber(dtype_, [&]<typename T>() -> double {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<double>(flat<T>()[index]);
    } else {
      return static_cast<float>(flat<T>()[index]);
    }
  });
}

Tensor Tensor::Reshaped(Shape shape) const {
  MUSTER_CHECK(shape.element_count() == element_count_);
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Tensor Tensor::SliceRows(int64_t begin, int64_t end) const {
  MUSTER_CHECK(shape_.rank() > 0 && 0 <= begin && begin <= end &&
               end <= shape_.dim(0));
  const int64_t row_elements = shape_.ElementCountInRange(1, shape_.rank());
  Tensor result = *this;
  result.shape_.set_dim(0, end - begin);
  result.element_count_ = (end - begin) * row_elements;
  result.data_ = data_ + begin * row_elements * SizeOf(dtype_);
  return result;
}

Tensor Tensor::Clone() const {
  if (!IsValid()) return {};
  MUSTER_CHECK(is_on_host_);
  Tensor copy(dtype_, shape_);
  if (dtype_ == DType::kString) {
    const auto strings = flat<std::string>();
    std::copy(strings.begin(), strings.end(),
              copy.mutable_flat<std::string>().begin());
  } else if (element_count_ > 0) {
    std::memcpy(copy.data_, data_, size_bytes());
  }
  return copy;
}

std::string Tensor::DebugString() const {
  if (!IsValid()) return "invalid tensor";
  if (!is_on_host_) return type().ToString() + " on a device";
  constexpr int64_t kElementsMax = 16;
  std::string text = absl::StrCat(type().ToString(), " {");
  for (int64_t i = 0; i < std::min(element_count_, kElementsMax); ++i) {
    if (i > 0) text += ", ";
    if (dtype_ == DType::kString) {
      absl::StrAppend(&text, "\"", flat<std::string>()[i], "\"");
    } else {
      absl::StrAppend(&text, ElementAsDouble(i));
    }
  }
  return text + (element_count_ > kElementsMax ? ", ...}" : "}");
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.IsValid() || !tensor.is_on_host()) {
    return out << tensor.DebugString();
  }
  out << tensor.type().ToString() << " ";
  PrintDimension(out, tensor, /*dim=*/0, /*first_element=*/0,
                 tensor.element_count());
  return out;
}

bool BitwiseEqual(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type()) return false;
  if (a.dtype() == DType::kString) {
    return a.flat<std::string>() == b.flat<std::string>();
  }
  return a.size_bytes() == 0 ||
         std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()) == 0;
}

}  // namespace muster
