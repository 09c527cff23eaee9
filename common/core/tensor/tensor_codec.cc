#include "common/core/tensor/tensor_codec.h"

#include <cstring>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "proto/tensor.pb.h"

namespace muster {

proto::TensorShape EncodeShape(const Shape& shape) {
  proto::TensorShape encoded;
  for (const int64_t dim : shape.dims()) encoded.add_dim(dim);
  return encoded;
}

absl::StatusOr<Shape> DecodeShape(const proto::TensorShape& shape,
                                  bool allow_unknown) {
  return Shape::Create(
      {shape.dim().data(), static_cast<size_t>(shape.dim_size())},
      allow_unknown);
}

proto::DataType EncodeDType(DType dtype) {
  return static_cast<proto::DataType>(dtype);
}

absl::StatusOr<DType> DecodeDType(proto::DataType dtype) {
  if (!IsKnownDType(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(static_cast<int>(dtype), " is not the number of a dtype"));
  }
  return static_cast<DType>(dtype);
}

proto::TensorType EncodeType(const TensorType& type) {
  proto::TensorType encoded;
  encoded.set_dtype(EncodeDType(type.dtype));
  *encoded.mutable_shape() = EncodeShape(type.shape);
  return encoded;
}

absl::StatusOr<TensorType> DecodeType(const proto::TensorType& type,
                                      bool allow_unknown) {
  TensorType decoded;
  ASSIGN_OR_RETURN(decoded.dtype, DecodeDType(type.dtype()));
  ASSIGN_OR_RETURN(decoded.shape, DecodeShape(type.shape(), allow_unknown));
  return decoded;
}

proto::Tensor EncodeTensor(const Tensor& tensor) {
  proto::Tensor encoded;
  encoded.set_dtype(EncodeDType(tensor.dtype()));
  *encoded.mutable_shape() = EncodeShape(tensor.shape());
  if (tensor.dtype() == DType::kString) {
    for (const std::string& value : tensor.flat<std::string>()) {
      encoded.add_string_values(value);
    }
  } else {
    encoded.set_content(tensor.raw_data(), tensor.size_bytes());
  }
  return encoded;
}

absl::StatusOr<Tensor> DecodeTensor(const proto::Tensor& tensor) {
  ASSIGN_OR_RETURN(const DType dtype, DecodeDType(tensor.dtype()));
  ASSIGN_OR_RETURN(const Shape shape, DecodeShape(tensor.shape(), false));
  const bool is_string = dtype == DType::kString;
  const uint64_t actual =
      is_string ? tensor.string_values_size() : tensor.content().size();
  // Compares by division, so that a hostile element count cannot overflow.
  const uint64_t unit = is_string ? 1 : SizeOf(dtype);
  const uint64_t expected_elements = shape.element_count();
  if (actual % unit != 0 || actual / unit != expected_elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a tensor of type ", TensorType{dtype, shape}.ToString(), " holds ",
        expected_elements, " elements, but its content is ", actual,
        is_string ? " strings" : " bytes"));
  }
  Tensor decoded(dtype, shape);
  if (is_string) {
    const auto values = decoded.mutable_flat<std::string>();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = tensor.string_values(static_cast<int>(i));
    }
  } else if (actual > 0) {
    std::memcpy(decoded.mutable_raw_data(), tensor.content().data(), actual);
  }
  return decoded;
}

}  // namespace muster
