#include "common/learn/train/checkpoints/callback_tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/learn/strategy/chief_result.h"
#include "proto/tensor.pb.h"
#include "proto/training_state.pb.h"

namespace muster {
namespace {

// Maximal number of bytes in one message.
constexpr size_t kPieceBytes = size_t{64} << 20;

absl::StatusOr<std::string> EncodedType(const absl::StatusOr<Tensor>& tensor) {
  RETURN_IF_ERROR(tensor.status());
  if (tensor->dtype() == DType::kString) {
    return absl::UnimplementedError("a callback has a tensor of strings");
  }
  return EncodeType(tensor->type()).SerializeAsString();
}

}  // namespace

ObjectPath CallbackTensorPath(size_t callback, size_t tensor) {
  return {"callbacks", absl::StrCat(callback), absl::StrCat(tensor)};
}

absl::StatusOr<CallbackTensors> ReadCallbackTensors(
    const TensorBundleReader& reader, const proto::TrainingState& state) {
  CallbackTensors tensors(state.callback_tensor_counts_size());
  for (size_t callback = 0; callback < tensors.size(); ++callback) {
    const int64_t count =
        state.callback_tensor_counts(static_cast<int>(callback));
    for (int64_t i = 0; i < count; ++i) {
      const std::string key = VariableKey(CallbackTensorPath(callback, i));
      if (reader.Find(key) == nullptr) {
        return absl::DataLossError(
            absl::StrCat(reader.prefix(), " lacks ", key, ", one of ", count,
                         " tensors of callback ", callback));
      }
      ASSIGN_OR_RETURN(Tensor tensor, reader.Read(key));
      tensors[callback].push_back(std::move(tensor));
    }
  }
  return tensors;
}

absl::StatusOr<Tensor> TensorFromChief(const WorkerAgreement& agreement,
                                       absl::string_view what,
                                       const absl::StatusOr<Tensor>& tensor) {
  ASSIGN_OR_RETURN(const std::string encoded,
                   ResultFromChief(agreement, what, EncodedType(tensor)));
  proto::TensorType message;
  if (!message.ParseFromString(encoded)) {
    return absl::InternalError(absl::StrCat(what, ": its type is damaged"));
  }
  ASSIGN_OR_RETURN(const TensorType type,
                   DecodeType(message, /*allow_unknown=*/false));
  const bool is_chief = agreement.is_chief();
  Tensor result = is_chief ? *tensor : Tensor(type.dtype, type.shape);
  for (size_t begin = 0; begin < result.size_bytes(); begin += kPieceBytes) {
    const size_t size = std::min(kPieceBytes, result.size_bytes() - begin);
    std::string piece;
    if (is_chief) {
      piece.assign(reinterpret_cast<const char*>(result.raw_data()) + begin,
                   size);
    }
    ASSIGN_OR_RETURN(piece, agreement.FromChief(what, std::move(piece)));
    if (is_chief) continue;
    if (piece.size() != size) {
      return absl::InternalError(absl::StrCat(what, ": got ", piece.size(),
                                              " bytes, expected ", size));
    }
    std::memcpy(result.mutable_raw_data() + begin, piece.data(), size);
  }
  return result;
}

}  // namespace muster
