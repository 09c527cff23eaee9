#ifndef COMMON_NET_COLLECTIVES_PEERS_PEER_HEALTH_H_
#define COMMON_NET_COLLECTIVES_PEERS_PEER_HEALTH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/rpc/silence_counter.h"

namespace muster {

// The state of one peer's connections. Two streams connect two tasks. Each task
// opens one of them: ours is the outgoing stream, the peer's is the incoming
// one. If a process is killed, both break within milliseconds. If it is
// stopped, or its host is gone, the peer becomes silent.
//
// Pure: the caller passes events and times, and reads the state. Not
// thread-safe.
class PeerHealth {
 public:
  struct Options {
    absl::Duration heartbeat_interval = absl::Milliseconds(250);
    // A peer that is silent for longer is lost.
    absl::Duration heartbeat_timeout = absl::Milliseconds(2500);
  };

  explicit PeerHealth(const Options& options);

  // The peer has answered the hello on our stream.
  void OnWelcomed(absl::Time now);
  // This task has accepted the peer's stream.
  void OnAccepted(absl::Time now);
  // Any message has arrived from the peer.
  void OnReceived(absl::Time now);
  // Our stream ended or could not be opened, or the peer refused it.
  void OnOutgoingEnded(absl::string_view why);
  void OnIncomingEnded();
  // A heartbeat interval has passed. Silence is counted in ticks, so that a
  // process that was itself stopped does not consider other tasks lost when it
  // continues.
  void OnTick();

  // True if both streams are open.
  bool IsPresent() const { return outgoing_open_ && incoming_open_; }
  // True if at least one stream is open: a process of this task is running.
  bool IsAlive() const { return outgoing_open_ || incoming_open_; }

  // Why the peer is not present: "connection refused", "it answers, but has not
  // reached this task yet".
  std::string MissingReason() const;

  // Why a peer that was present is lost; empty if it is not. A broken stream is
  // first opened again. If this fails, the process is gone.
  std::string LossReason() const;

  // True if nothing has arrived for more than two intervals.
  bool IsSilent() const { return silence_.IsLongerThan(absl::ZeroDuration()); }
  // When a message last arrived; absl::InfinitePast() if none has.
  absl::Time last_heard() const { return last_heard_; }

 private:
  const absl::Duration heartbeat_timeout_;

  bool outgoing_open_ = false;
  bool incoming_open_ = false;
  int outgoing_ends_ = 0;  // Since the stream was last open.
  bool was_welcomed_ = false;
  SilenceCounter silence_;
  SilenceCounter half_open_;   // Time since both streams were open.
  std::string broken_reason_;  // Why the last open stream has ended.
  std::string last_error_ = "not heard from yet";
  absl::Time last_heard_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_PEER_HEALTH_H_
