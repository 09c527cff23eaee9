#include "worker/command_tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "proto/worker.pb.h"

namespace muster {
namespace {

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("a command with tensors in shared memory: ", why));
}

absl::StatusOr<Tensor> View(const proto::SharedTensor& shared,
                            const ClientMemory& memory) {
  if (!IsKnownDType(shared.dtype()) ||
      !IsFloating(static_cast<DType>(shared.dtype()))) {
    return Refuse(absl::StrCat("a tensor has dtype ", shared.dtype()));
  }
  const auto dtype = static_cast<DType>(shared.dtype());
  if (shared.dims_size() > Shape::kRankMax) {
    return Refuse(absl::StrCat("a tensor has rank ", shared.dims_size()));
  }
  absl::StatusOr<Shape> shape =
      Shape::Create(shared.dims(), /*allow_unknown=*/false);
  if (!shape.ok()) return Refuse(shape.status().message());
  const uint64_t element_bytes = SizeOf(dtype);
  if (shared.offset() % element_bytes != 0 ||
      shared.offset() >= memory.size_bytes) {
    return Refuse(absl::StrCat("offset ", shared.offset(),
                               " is no place in the segment's ",
                               memory.size_bytes, " bytes"));
  }
  const uint64_t element_count = shape->element_count();
  if (element_count > (memory.size_bytes - shared.offset()) / element_bytes) {
    return Refuse(absl::StrCat(
        "a tensor of ", element_count, " elements at offset ", shared.offset(),
        " is too large; the segment has ", memory.size_bytes, " bytes"));
  }
  return Tensor(
      dtype, *std::move(shape),
      Buffer::Wrap(memory.data + shared.offset(), element_count * element_bytes,
                   [owner = memory.owner] {}));
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> CollectCommandTensors(
    const proto::WorkerCommand& command, std::vector<Tensor> beside,
    const ClientMemory& memory) {
  if (command.shared_tensors().empty()) return beside;
  if (memory.data == nullptr) {
    return Refuse(
        absl::StrCat("segment ", command.segment_id(), " is not shared here"));
  }
  std::vector<Tensor> all;
  auto next = beside.begin();
  for (const proto::SharedTensor& shared : command.shared_tensors()) {
    const auto count = static_cast<ptrdiff_t>(shared.position()) -
                       static_cast<ptrdiff_t>(all.size());
    if (count < 0 || count > beside.end() - next) {
      return Refuse(absl::StrCat("a tensor has position ", shared.position()));
    }
    std::move(next, next + count, std::back_inserter(all));
    next += count;
    ASSIGN_OR_RETURN(all.emplace_back(), View(shared, memory));
  }
  std::move(next, beside.end(), std::back_inserter(all));
  return all;
}

}  // namespace muster
