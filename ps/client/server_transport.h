#ifndef PS_CLIENT_SERVER_TRANSPORT_H_
#define PS_CLIENT_SERVER_TRANSPORT_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/message.h"
#include "proto/parameter_server.pb.h"

namespace muster {

// The expected response to one gather or pull.
struct AnswerSlot {
  TensorType type;
  // Where the caller would have it: in memory of ServerGroup::AllocateShared(),
  // which `place_owner` keeps. Null where the caller has no wish. A transport
  // may ignore it; the address of the answer shows whether it did.
  uint8_t* place = nullptr;
  std::shared_ptr<Buffer> place_owner;
};

// One exchange, as it goes out. All is borrowed and stays untouched until the
// answer is there.
struct OutgoingExchange {
  // Without offsets; those are the transport's.
  const proto::ExchangeRequest* request = nullptr;
  // As proto::ExchangeRequest says.
  const std::vector<Tensor>* tensors = nullptr;
  // One for each gather, then one for each pull.
  const std::vector<AnswerSlot>* slots = nullptr;
  absl::Duration timeout;
  // False for another attempt at an exchange of which it is unknown whether its
  // server is still at it.
  bool may_share_memory = true;
};

struct ExchangeAnswer {
  proto::ExchangeResponse response;
  // One for each slot; none for a pull whose value has not changed. They keep
  // their memory.
  std::vector<std::optional<ReceivedTensor>> tensors;
};

// How the bytes of an exchange get to one server and back: beside messages, or
// through memory that client and server share. The request itself, and with it
// the admission check, deadlines and errors, is an ordinary call either way.
//
// Thread-safe.
class ServerTransport {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ExchangeAnswer>)>;

  virtual ~ServerTransport() = default;

  // `done` runs once and must not wait.
  //   kInternal  the answer does not fit the question
  //   others     as Channel's
  virtual void StartExchange(const OutgoingExchange& exchange, Done done) = 0;
};

// `channel` is borrowed.
std::unique_ptr<ServerTransport> MakeChannelTransport(Channel* channel);

// Puts an answer's tensors into the slots of `exchange`. `in_segment` has one
// for each slot that the server was to write to, and is empty when it was to
// write to none.
//   kInternal  they are too few, too many or of other types
absl::StatusOr<ExchangeAnswer> SortAnswer(
    const OutgoingExchange& exchange, const ReceivedMessage& message,
    std::vector<std::optional<ReceivedTensor>> in_segment);

}  // namespace muster

#endif  // PS_CLIENT_SERVER_TRANSPORT_H_
