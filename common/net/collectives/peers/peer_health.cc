#include "common/net/collectives/peers/peer_health.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {

PeerHealth::PeerHealth(const Options& options)
    : options_(options),
      silent_ticks_max_(std::max<int64_t>(
          2, options.heartbeat_timeout / options.heartbeat_interval)) {}

void PeerHealth::OnWelcomed(absl::Time now) {
  outgoing_open_ = true;
  was_welcomed_ = true;
  outgoing_ends_ = 0;
  OnHeard(now);
}

void PeerHealth::OnAccepted(absl::Time now) {
  incoming_open_ = true;
  OnHeard(now);
}

void PeerHealth::OnHeard(absl::Time now) {
  silent_ticks_ = 0;
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
  if (was_welcomed_) ++silent_ticks_;
  half_open_ticks_ = IsPresent() ? 0 : half_open_ticks_ + 1;
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
  if (silent_ticks_ > silent_ticks_max_) {
    return absl::StrCat("no sign of life for ",
                        absl::FormatDuration(options_.heartbeat_timeout));
  }
  if (half_open_ticks_ > silent_ticks_max_) {
    return outgoing_open_
               ? "it answers, but no longer reaches this task"
               : absl::StrCat("the connection broke (", broken_reason_,
                              ") and is not made again");
  }
  return "";
}

}  // namespace muster
