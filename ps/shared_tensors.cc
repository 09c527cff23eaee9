#include "ps/shared_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "proto/parameter_server.pb.h"
#include "ps/parameter_shard.h"

namespace muster {
namespace {

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("an exchange in shared memory: ", why));
}

absl::Status CheckOffset(uint64_t offset, const ClientMemory& memory) {
  if (offset >= memory.size_bytes) {
    return Refuse(absl::StrCat("offset ", offset,
                               " is outside of the segment's ",
                               memory.size_bytes, " bytes"));
  }
  return absl::OkStatus();
}

// Reads the types of the tensors in the segment in order.
class TypeReader {
 public:
  explicit TypeReader(const proto::ExchangeRequest& request)
      : request_(request) {}

  absl::StatusOr<TensorType> Next() {
    if (index_ == request_.tensor_dtypes_size()) {
      return Refuse("a tensor has no type");
    }
    const int dtype = request_.tensor_dtypes(index_);
    const int rank = request_.tensor_ranks(index_);
    ++index_;
    if (!IsKnownDType(dtype) || static_cast<DType>(dtype) == DType::kString) {
      return Refuse(absl::StrCat("a tensor has dtype ", dtype));
    }
    if (rank < 0 || rank > Shape::kRankMax ||
        rank > request_.tensor_dims_size() - dim_index_) {
      return Refuse(absl::StrCat("a tensor has rank ", rank));
    }
    absl::StatusOr<Shape> shape = Shape::Create(
        absl::MakeConstSpan(request_.tensor_dims().data() + dim_index_, rank),
        /*allow_unknown=*/false);
    if (!shape.ok()) return Refuse(shape.status().message());
    dim_index_ += rank;
    return TensorType{static_cast<DType>(dtype), *std::move(shape)};
  }

  bool IsAtEnd() const { return index_ == request_.tensor_dtypes_size(); }

 private:
  const proto::ExchangeRequest& request_;
  int index_ = 0;
  int dim_index_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<ReceivedTensor>> CollectTensors(
    const proto::ExchangeRequest& request,
    absl::Span<const ReceivedTensor> beside, const ClientMemory& memory) {
  if (request.tensor_dtypes_size() != request.tensor_ranks_size()) {
    return Refuse(absl::StrCat(request.tensor_dtypes_size(), " dtypes but ",
                               request.tensor_ranks_size(), " ranks"));
  }
  if (request.tensor_offsets().empty()) {
    if (request.tensor_dtypes_size() > 0) {
      return Refuse("more types than tensors");
    }
    return std::vector<ReceivedTensor>(beside.begin(), beside.end());
  }
  std::vector<ReceivedTensor> tensors;
  tensors.reserve(request.tensor_offsets_size());
  TypeReader types(request);
  uint64_t left_bytes = kSharedTensorBytesMax;
  for (uint64_t offset : request.tensor_offsets()) {
    if (offset == 0) {
      if (beside.empty())
        return Refuse(
            "a tensor has offset 0 but was not sent beside the request");
      tensors.push_back(beside.front());
      beside.remove_prefix(1);
      continue;
    }
    RETURN_IF_ERROR(CheckOffset(offset, memory));
    ASSIGN_OR_RETURN(TensorType type, types.Next());
    const uint64_t element_count = type.shape.element_count();
    const uint64_t element_bytes = SizeOf(type.dtype);
    const uint64_t room_bytes =
        std::min<uint64_t>(left_bytes, memory.size_bytes - offset);
    if (element_count > room_bytes / element_bytes) {
      return Refuse(absl::StrCat(
          "a tensor ", type.ToString(), " at offset ", offset,
          " is too large; the segment has ", memory.size_bytes,
          " bytes, and an exchange may have ", kSharedTensorBytesMax));
    }
    const size_t size_bytes = element_count * element_bytes;
    left_bytes -= size_bytes;
    absl::InlinedVector<MessageSlice, 1> pieces;
    if (size_bytes > 0) {
      pieces.push_back({memory.data + offset, size_bytes, memory.owner});
    }
    tensors.emplace_back(std::move(type), std::move(pieces));
  }
  if (!types.IsAtEnd()) return Refuse("more types than tensors");
  if (!beside.empty()) {
    return Refuse("more tensors were sent beside the request than it uses");
  }
  return tensors;
}

absl::StatusOr<std::vector<AnswerPlace>> CollectPlaces(
    const proto::ExchangeRequest& request, const ClientMemory& memory) {
  std::vector<AnswerPlace> places;
  places.reserve(request.answer_offsets_size());
  for (uint64_t offset : request.answer_offsets()) {
    if (offset == 0) {
      places.emplace_back();
      continue;
    }
    RETURN_IF_ERROR(CheckOffset(offset, memory));
    places.push_back({memory.data + offset, memory.size_bytes - offset});
  }
  return places;
}

}  // namespace muster
