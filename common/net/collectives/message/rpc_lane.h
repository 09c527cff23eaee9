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

// Lanes over RPC streams between tasks. They are slower than raw sockets, but
// work wherever the tasks' servers can be reached, and pass the same admission
// check.
//
// Deadlines are of Clock::Real().
namespace muster {

inline constexpr absl::string_view kOpenLaneMethod =
    "/muster.Collectives/OpenLane";

// Accepts the lanes that other ranks open. Thread-safe.
class RpcLaneAcceptor {
 public:
  RpcLaneAcceptor();
  ~RpcLaneAcceptor();
  RpcLaneAcceptor(const RpcLaneAcceptor&) = delete;
  RpcLaneAcceptor& operator=(const RpcLaneAcceptor&) = delete;

  // Adds the method that opens lanes to `service`. Called before the server
  // starts. This object need not outlive the server.
  void AddTo(Service* service);

  // Closes lanes of earlier generations that were not accepted, and refuses new
  // ones. Lanes of later generations wait to be accepted.
  void StartGeneration(uint64_t generation);

  // Waits until `rank` has opened a lane for `generation`. Returns the newest
  // lane if the rank opened several.
  //   kDeadlineExceeded    the rank has opened none
  //   kFailedPrecondition  a later generation has started
  absl::StatusOr<std::unique_ptr<Lane>> Accept(int rank, uint64_t generation,
                                               absl::Time deadline);

  class State;  // Shared with the server's streams.

 private:
  const std::shared_ptr<State> state_;
};

// Opens a lane as `rank` to the task at the other end of `channel`. Returns
// when that task has answered, which may be before it calls Accept(). If the
// network delivers the opening more than once, only one lane is opened. The
// channel must outlive the lane.
//   kUnavailable         the task cannot be reached, or the lane broke
//   kUnimplemented       the task does not accept lanes
//   kFailedPrecondition  the task is at a later generation
//   kDeadlineExceeded    no answer
absl::StatusOr<std::unique_ptr<Lane>> OpenRpcLane(Channel* channel, int rank,
                                                  uint64_t generation,
                                                  absl::Time deadline);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_RPC_LANE_H_
