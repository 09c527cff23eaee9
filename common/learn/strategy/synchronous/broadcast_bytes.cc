#include "common/learn/strategy/synchronous/broadcast_bytes.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/chief_result.h"

namespace muster {
namespace {

constexpr int64_t kSizeBytesMax = int64_t{1} << 30;

absl::Status BroadcastTo(Communicator& communicator, const CollectiveCall& call,
                         int root, std::string* bytes) {
  int64_t size = static_cast<int64_t>(bytes->size());
  RETURN_IF_ERROR(
      communicator.Broadcast({DType::kInt64, 1, &size}, root, call));
  if (size < 0 || size > kSizeBytesMax) {
    return absl::InternalError(absl::StrCat(call.name, ": rank ", root,
                                            " announces ", size, " bytes"));
  }
  bytes->resize(size);
  return communicator.Broadcast({DType::kUint8, size, bytes->data()}, root,
                                call);
}

}  // namespace

absl::StatusOr<std::string> BroadcastBytes(ReplicaGroup* group,
                                           const CollectiveCall& call,
                                           std::string bytes, int root) {
  if (group->worker_count() == 1) return bytes;
  const ReplicaGroup::Communicators communicators = group->communicators();
  std::vector<std::string> copies(communicators.size(), bytes);
  RETURN_IF_ERROR(group->Run([&](int replica) {
    return BroadcastTo(*communicators[replica], call, root, &copies[replica]);
  }));
  return std::move(copies[0]);
}

absl::Status BroadcastStatus(ReplicaGroup* group, const CollectiveCall& call,
                             const absl::Status& status) {
  if (group->worker_count() == 1) return status;
  const absl::StatusOr<std::string> own =
      status.ok() ? absl::StatusOr<std::string>(std::string())
                  : absl::StatusOr<std::string>(status);
  ASSIGN_OR_RETURN(const std::string bytes,
                   BroadcastBytes(group, call, EncodeResult(own)));
  if (group->worker_index() == 0) return status;
  return DecodeResult(bytes).status();
}

}  // namespace muster
