#ifndef PS_CLIENT_LANE_H_
#define PS_CLIENT_LANE_H_

#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/channel.h"
#include "common/rpc/message.h"
#include "common/tensor/tensor.h"
#include "proto/parameter_server.pb.h"

namespace muster {

// How the bytes of an exchange get to one server and back. Over the network
// there is one kind; between processes of one host another may stand in.
//
// Thread-safe.
class Lane {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ReceivedMessage>)>;

  virtual ~Lane() = default;

  // `tensors` as proto::ExchangeRequest says; they stay untouched until `done`
  // has run, which happens once and must not wait.
  virtual void StartExchange(const proto::ExchangeRequest& request,
                             const std::vector<Tensor>& tensors,
                             absl::Duration timeout, Done done) = 0;
};

// `channel` is borrowed.
std::unique_ptr<Lane> MakeChannelLane(Channel* channel);

}  // namespace muster

#endif  // PS_CLIENT_LANE_H_
