#ifndef PS_SHARED_TENSORS_H_
#define PS_SHARED_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/rpc/message.h"

// Resolves the offsets of an exchange into tensors and buffers in shared
// memory. The client's memory is not trusted: its contents may change at any
// time. Sizes are never read from it, and every offset is checked against the
// size of the segment.
namespace muster {

struct AnswerPlace;
namespace proto {
class ExchangeRequest;
}  // namespace proto

// Memory that a client shares. Its size is constant while `owner` lives.
struct ClientMemory {
  uint8_t* data = nullptr;  // Aligned to a page.
  size_t size_bytes = 0;
  std::shared_ptr<const void> owner;
};

// The limit for the tensors of one exchange, the same as for a message.
inline constexpr size_t kSharedTensorBytesMax = size_t{1} << 31;

// Returns the tensors of `request` in order: the tensors `beside` it in the
// message, and tensors in `memory`, which keep it mapped.
//   kInvalidArgument  a type or an offset is invalid, or a tensor exceeds the
//                     memory; the message says which
absl::StatusOr<std::vector<ReceivedTensor>> CollectTensors(
    const proto::ExchangeRequest& request,
    absl::Span<const ReceivedTensor> beside, const ClientMemory& memory);

// Returns the buffers for the answers to `request`.
//   kInvalidArgument  an offset is outside of the memory
absl::StatusOr<std::vector<AnswerPlace>> CollectPlaces(
    const proto::ExchangeRequest& request, const ClientMemory& memory);

}  // namespace muster

#endif  // PS_SHARED_TENSORS_H_
