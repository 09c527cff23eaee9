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

// Connects raw sockets between ranks. One rank listens and sends its address
// and token to the other rank over a connection that is already trusted. The
// other rank connects and sends the token. All other connections are refused;
// refusals are counted (muster_lane_connections_refused_total) and logged at a
// bounded rate.
//
// Deadlines are of Clock::Real().
namespace muster {

struct LaneListenerOptions {
  // 0: any free port.
  int port = 0;
  // If true, lanes use TLS 1.3 with the token as their key (tls_stream.h).
  bool encrypts = false;
  // For accepted lanes; see MakeSocketLane().
  absl::Duration silence_timeout = kLaneSilenceTimeout;
};

// Accepts raw lanes. Not thread-safe.
class LaneListener {
 public:
  // A peer whose hello has not arrived within this time is refused.
  static constexpr absl::Duration kHandshakeTimeout = absl::Seconds(10);
  // Limits of the connections without a hello, from one address and in total.
  static constexpr int kUndecidedCountOfAddressMax = 128;
  static constexpr int kUndecidedCountMax = 1024;

  // Listens on a port of `host`, a name or an address.
  //   kInvalidArgument  `host` is not an address of this machine
  //   kUnavailable      the port is taken, or the system has no socket
  static absl::StatusOr<std::unique_ptr<LaneListener>> ListenTcp(
      absl::string_view host, const LaneListenerOptions& options = {});

  // Listens on an abstract Unix socket, for ranks on the same host, in the same
  // network namespace and of the same user.
  static absl::StatusOr<std::unique_ptr<LaneListener>> ListenUnix();

  ~LaneListener();
  LaneListener(const LaneListener&) = delete;
  LaneListener& operator=(const LaneListener&) = delete;

  // "tcp:10.0.0.7:40123", "tls:[::1]:40123" or "unix:@muster-lane-3f0c...".
  // The argument of ConnectLane().
  const std::string& address() const { return address_; }
  // 32 hexadecimal digits: 128 bits from OpenSSL's random generator.
  const std::string& token() const { return token_; }

  // Waits until each of `ranks` has connected for `generation`. A process with
  // another token, generation or rank is refused and receives the reason.
  // ConnectLane() returns only after it has been accepted, so every rank must
  // first connect to the lower ranks and then accept the higher ranks.
  //   kDeadlineExceeded  names the ranks that have not connected
  absl::StatusOr<std::map<int, std::unique_ptr<Lane>>> Accept(
      absl::Span<const int> ranks, uint64_t generation, absl::Time deadline);

 private:
  LaneListener(int fd, std::string address, std::string token,
               absl::Duration silence_timeout)
      : fd_(fd),
        address_(std::move(address)),
        token_(std::move(token)),
        silence_timeout_(silence_timeout) {}

  const int fd_;
  const std::string address_;
  const std::string token_;
  const absl::Duration silence_timeout_;
};

// True if lanes to `address` are encrypted, or stay on this host.
bool IsLaneAddressProtected(absl::string_view address);

// Connects to a listener as `rank`. `silence_timeout` is that of
// MakeSocketLane().
//   kInvalidArgument     `address` is not the address of a listener
//   kPermissionDenied    the listener has another token, does not speak TLS
//                        1.3 where `address` says so, or is a process of
//                        another user
//   kFailedPrecondition  the listener is at another generation, or does not
//                        wait for this rank
//   kUnavailable         no process listens there
//   kDeadlineExceeded    no answer
absl::StatusOr<std::unique_ptr<Lane>> ConnectLane(
    absl::string_view address, absl::string_view token, int rank,
    uint64_t generation, absl::Time deadline,
    absl::Duration silence_timeout = kLaneSilenceTimeout);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_LANE_LISTENER_H_
