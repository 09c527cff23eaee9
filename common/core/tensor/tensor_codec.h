#ifndef COMMON_CORE_TENSOR_TENSOR_CODEC_H_
#define COMMON_CORE_TENSOR_TENSOR_CODEC_H_

#include "absl/status/statusor.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Serializes tensors, types and shapes. Decoding validates every size before it
// allocates memory.
namespace muster {

namespace proto {
enum DataType : int;
class Tensor;
class TensorShape;
class TensorType;
}  // namespace proto

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
//   kInvalidArgument  dtype or shape is invalid, or the content does not have
//                     the size they imply
absl::StatusOr<Tensor> DecodeTensor(const proto::Tensor& tensor);

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_TENSOR_CODEC_H_
