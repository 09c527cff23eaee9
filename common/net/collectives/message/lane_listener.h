#ifndef COMMON_NET_COLLECTIVES_MESSAGE_LANE_LISTENER_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_LANE_LISTENER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/net/collectives/message/lane.h"

// How two ranks come by a raw socket between them. One listens, and tells the
// other its address and its token over a way that is already trusted; the other
// connects and shows the token. So a stranger on the network gets no lane.
//
// Deadlines are of Clock::Real().
namespace muster {

// Accepts raw lanes. Not thread-safe.
class LaneListener {
 public:
  // Listens on a port of its own of `host`, a name or an address.
  //   kInvalidArgument  `host` is none of this machine
  //   kUnavailable      no socket is to be had
  static absl::StatusOr<std::unique_ptr<LaneListener>> ListenTcp(
      absl::string_view host);

  // Listens on an abstract Unix socket: for ranks of one host and one network
  // namespace, and of processes of one user.
  static absl::StatusOr<std::unique_ptr<LaneListener>> ListenUnix();

  ~LaneListener();
  LaneListener(const LaneListener&) = delete;
  LaneListener& operator=(const LaneListener&) = delete;

  // "tcp:10.0.0.7:40123", "tcp:[::1]:40123" or "unix:@muster-lane-3f0c...".
  // What ConnectLane() takes.
  const std::string& address() const { return address_; }
  // 32 hexadecimal digits, drawn at random.
  const std::string& token() const { return token_; }

  // Waits until each of `ranks` has connected for `generation`. Whoever shows
  // another token, generation or rank is refused and told so. ConnectLane()
  // returns only when it has been accepted, so every rank first connects to the
  // lower ones and then accepts the higher ones.
  //   kDeadlineExceeded  names the ranks that have not connected
  absl::StatusOr<std::map<int, std::unique_ptr<Lane>>> Accept(
      absl::Span<const int> ranks, uint64_t generation, absl::Time deadline);

 private:
  LaneListener(int fd, std::string address, std::string token)
      : fd_(fd), address_(std::move(address)), token_(std::move(token)) {}

  const int fd_;
  const std::string address_;
  const std::string token_;
};

// Connects to a listener as `rank`.
//   kInvalidArgument     `address` is none
//   kPermissionDenied    the listener does not know the token, or is a process
//                        of another user
//   kFailedPrecondition  the listener is at another generation, or does not
//                        wait for this rank
//   kUnavailable         nobody listens there
//   kDeadlineExceeded    no answer
absl::StatusOr<std::unique_ptr<Lane>> ConnectLane(absl::string_view address,
                                                  absl::string_view token,
                                                  int rank, uint64_t generation,
                                                  absl::Time deadline);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_LANE_LISTENER_H_
