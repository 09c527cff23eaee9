#ifndef COMMON_NET_COLLECTIVES_PEERS_PEER_HEALTH_H_
#define COMMON_NET_COLLECTIVES_PEERS_PEER_HEALTH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/rpc/silence_counter.h"

namespace muster {

// The state of one peer's connections. Two streams join two tasks, each opened
// by one of them: ours goes out, the peer's comes in. A process that was killed
// breaks both within milliseconds; one that was stopped, or whose host is gone,
// falls silent.
//
// Pure: told what happens and when, and asked for a verdict. Not thread-safe.
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
  // The peer's own stream was let in.
  void OnAccepted(absl::Time now);
  // Anything came from it.
  void OnHeard(absl::Time now);
  // Our stream ended or could not be opened, or the peer would not let us in.
  void OnOutgoingEnded(absl::string_view why);
  void OnIncomingEnded();
  // A heartbeat interval has passed. Silence is counted in ticks, so that a
  // process that was itself stopped takes no task for lost when it continues.
  void OnTick();

  // Both streams stand.
  bool IsPresent() const { return outgoing_open_ && incoming_open_; }
  // At least one stands: some process fills the place.
  bool IsAlive() const { return outgoing_open_ || incoming_open_; }

  // Why it is not present: "connection refused", "it answers, but has not
  // reached this task yet".
  std::string MissingReason() const;

  // Why a peer that was present must be given up; empty while it need not be.
  // A broken stream is opened once more first: if no process answers there, the
  // process is gone.
  std::string LossReason() const;

  // Nothing has come for more than two intervals.
  bool IsSilent() const { return silence_.IsLongerThan(absl::ZeroDuration()); }
  // When anything came last; absl::InfinitePast() for never.
  absl::Time last_heard() const { return last_heard_; }

 private:
  const absl::Duration heartbeat_timeout_;

  bool outgoing_open_ = false;
  bool incoming_open_ = false;
  int outgoing_ends_ = 0;  // Since it stood last.
  bool was_welcomed_ = false;
  SilenceCounter silence_;
  SilenceCounter half_open_;   // Since both streams were open.
  std::string broken_reason_;  // Why the stream that stood has ended.
  std::string last_error_ = "not heard from yet";
  absl::Time last_heard_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_PEER_HEALTH_H_
