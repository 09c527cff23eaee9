#ifndef COMMON_NET_COLLECTIVES_MESSAGE_RPC_LANE_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_RPC_LANE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/service.h"

// Lanes over streams between tasks: slower than a raw socket, but they go
// wherever the tasks' own server is reached, and through the same admission
// check.
//
// Deadlines are of Clock::Real().
namespace muster {

inline constexpr absl::string_view kOpenLaneMethod =
    "/muster.Collectives/OpenLane";

// Hands over the lanes that other ranks open. Thread-safe.
class RpcLaneAcceptor {
 public:
  RpcLaneAcceptor();
  ~RpcLaneAcceptor();
  RpcLaneAcceptor(const RpcLaneAcceptor&) = delete;
  RpcLaneAcceptor& operator=(const RpcLaneAcceptor&) = delete;

  // Adds the method by which lanes are opened. Before the server starts; this
  // object need not outlive it.
  void AddTo(Service* service);

  // Lanes of earlier generations are closed if they were not taken, and
  // refused from now on. Those of later ones wait to be accepted.
  void StartGeneration(uint64_t generation);

  // Waits until `rank` has opened a lane for `generation`. The newest, if it
  // opened several.
  //   kDeadlineExceeded    it has not
  //   kFailedPrecondition  a later generation has started
  absl::StatusOr<std::unique_ptr<Lane>> Accept(int rank, uint64_t generation,
                                               absl::Time deadline);

  class State;  // Shared with the server's streams.

 private:
  const std::shared_ptr<State> state_;
};

// Opens a lane to the task at the other end of `channel`, as `rank`. Returns
// when the other end has answered; whether anyone has accepted it there does
// not matter. If the network delivers the opening more than once, this is still
// one lane. The channel outlives the lane.
//   kUnavailable         the task cannot be reached, or the lane broke
//   kUnimplemented       the task takes no lanes
//   kFailedPrecondition  the task is at a later generation
//   kDeadlineExceeded    no answer
absl::StatusOr<std::unique_ptr<Lane>> OpenRpcLane(Channel* channel, int rank,
                                                  uint64_t generation,
                                                  absl::Time deadline);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_RPC_LANE_H_
