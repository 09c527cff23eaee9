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
  // The preferred address of the response, in memory of
  // ServerGroup::AllocateShared() that `place_owner` keeps alive. Null for no
  // preference. A transport may ignore it; the address of the response tells
  // whether it did.
  uint8_t* place = nullptr;
  std::shared_ptr<Buffer> place_owner;
};

// An exchange to be sent. Everything is borrowed and must not change until the
// response has been received.
struct OutgoingExchange {
  // Without offsets; the transport adds them.
  const proto::ExchangeRequest* request = nullptr;
  // The tensors as proto::ExchangeRequest defines them.
  const std::vector<Tensor>* tensors = nullptr;
  // One for each gather, then one for each pull.
  const std::vector<AnswerSlot>* slots = nullptr;
  absl::Duration timeout;
  // False if this is a repetition and the server may still be processing an
  // earlier attempt.
  bool may_share_memory = true;
};

struct ExchangeAnswer {
  proto::ExchangeResponse response;
  // One for each slot; absent for a pull whose value has not changed. They own
  // their memory.
  std::vector<std::optional<ReceivedTensor>> tensors;
};

// Passes the tensors of an exchange to a server and back: inside gRPC messages
// or through memory that client and server share. The request itself is an
// ordinary call in both cases, with its admission check, deadline and errors.
//
// Thread-safe.
class ServerTransport {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ExchangeAnswer>)>;

  virtual ~ServerTransport() = default;

  // Calls `done` once; `done` must not block.
  //   kInternal  the response does not fit the request
  //   others     as in Channel
  virtual void StartExchange(const OutgoingExchange& exchange, Done done) = 0;
};

// `channel` is borrowed.
std::unique_ptr<ServerTransport> MakeChannelTransport(Channel* channel);

// Assigns the tensors of a response to the slots of `exchange`. `in_segment`
// has an entry for each slot that the server was asked to write to the segment;
// it is empty if there was none.
//   kInternal  there are too few or too many tensors, or their types differ
absl::StatusOr<ExchangeAnswer> SortAnswer(
    const OutgoingExchange& exchange, const ReceivedMessage& message,
    std::vector<std::optional<ReceivedTensor>> in_segment);

}  // namespace muster

#endif  // PS_CLIENT_SERVER_TRANSPORT_H_
