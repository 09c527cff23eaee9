#include "common/net/collectives/peers/peer_health.h"

#include "absl/strings/str_cat.h"

namespace muster {

PeerHealth::PeerHealth(const Options& options)
    : heartbeat_timeout_(options.heartbeat_timeout),
      silence_(options.heartbeat_interval),
      half_open_(options.heartbeat_interval) {}

void PeerHealth::OnWelcomed(absl::Time now) {
  outgoing_open_ = true;
  was_welcomed_ = true;
  outgoing_ends_ = 0;
  OnReceived(now);
}

void PeerHealth::OnAccepted(absl::Time now) {
  incoming_open_ = true;
  OnReceived(now);
}

void PeerHealth::OnReceived(absl::Time now) {
  silence_.OnReceived();
  last_heard_ = now;
}

void PeerHealth::OnOutgoingEnded(absl::string_view why) {
  if (outgoing_open_) broken_reason_ = std::string(why);
  outgoing_open_ = false;
  ++outgoing_ends_;
  last_error_ = std::string(why);
}

void PeerHealth::OnIncomingEnded() { incoming_open_ = false; }

void PeerHealth::OnTick() {
  if (was_welcomed_) silence_.OnTick();
  half_open_.OnTick();
  if (IsPresent()) half_open_.OnReceived();
}

std::string PeerHealth::MissingReason() const {
  if (IsPresent()) return "";
  if (outgoing_open_) {
    return "it answers, but has not reached this task yet";
  }
  return last_error_;
}

std::string PeerHealth::LossReason() const {
  if (!was_welcomed_) return "";
  if (!outgoing_open_ && outgoing_ends_ >= 2) {
    return absl::StrCat("the connection broke (", broken_reason_,
                        ") and cannot be made again (", last_error_, ")");
  }
  if (silence_.IsLongerThan(heartbeat_timeout_)) {
    return absl::StrCat("no sign of life for ",
                        absl::FormatDuration(absl::Trunc(
                            heartbeat_timeout_, absl::Milliseconds(1))));
  }
  if (half_open_.IsLongerThan(heartbeat_timeout_)) {
    return outgoing_open_
               ? "it answers, but no longer reaches this task"
               : absl::StrCat("the connection broke (", broken_reason_,
                              ") and is not made again");
  }
  return "";
}

}  // namespace muster
