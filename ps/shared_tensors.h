#ifndef PS_SHARED_TENSORS_H_
#define PS_SHARED_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/rpc/message.h"
#include "proto/parameter_server.pb.h"
#include "ps/parameter_shard.h"

// What the offsets of an exchange come to. A client's memory is not trusted:
// its contents may change at any time, so nothing in it is ever read as a size,
// and every offset is held against the size of the whole.
namespace muster {

// Memory that a client shares. Its size does not change while `owner` lives.
struct ClientMemory {
  uint8_t* data = nullptr;  // At the beginning of a page.
  size_t size_bytes = 0;
  std::shared_ptr<const void> owner;
};

// The tensors of one exchange may have as many bytes as those of a message.
inline constexpr size_t kSharedTensorBytesMax = size_t{1} << 31;

// The tensors of `request` in their order: those that came `beside` it, and
// those in `memory`, whose owner they keep.
//   kInvalidArgument  types or offsets make no sense, or a tensor does not lie
//                     in the memory as a whole; says which
absl::StatusOr<std::vector<ReceivedTensor>> CollectTensors(
    const proto::ExchangeRequest& request,
    absl::Span<const ReceivedTensor> beside, const ClientMemory& memory);

// Where the answers to `request` go.
//   kInvalidArgument  an offset makes no sense
absl::StatusOr<std::vector<AnswerPlace>> CollectPlaces(
    const proto::ExchangeRequest& request, const ClientMemory& memory);

}  // namespace muster

#endif  // PS_SHARED_TENSORS_H_
