#ifndef COMMON_CORE_TENSOR_TENSOR_CODEC_H_
#define COMMON_CORE_TENSOR_TENSOR_CODEC_H_

#include "absl/status/statusor.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "proto/tensor.pb.h"

// Tensors, types and shapes to and from their wire form. Decoding trusts
// nothing: every size is checked before memory is taken.
namespace muster {

proto::TensorShape EncodeShape(const Shape& shape);
//   kInvalidArgument  as Shape::Create
absl::StatusOr<Shape> DecodeShape(const proto::TensorShape& shape,
                                  bool allow_unknown);

proto::TensorType EncodeType(const TensorType& type);
//   kInvalidArgument  unknown dtype, or as DecodeShape
absl::StatusOr<TensorType> DecodeType(const proto::TensorType& type,
                                      bool allow_unknown);

//   kInvalidArgument  unknown dtype
absl::StatusOr<DType> DecodeDType(proto::DataType dtype);
proto::DataType EncodeDType(DType dtype);

proto::Tensor EncodeTensor(const Tensor& tensor);
//   kInvalidArgument  dtype or shape is bad, or the content is not as long as
//                     they say
absl::StatusOr<Tensor> DecodeTensor(const proto::Tensor& tensor);

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_TENSOR_CODEC_H_
