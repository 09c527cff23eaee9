#include "common/net/collectives/message/abort_lanes.h"

#include <poll.h>

#include <string>

#include "absl/status/statusor.h"
#include "common/core/system/clock.h"
#include "common/core/system/poll_timeout.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/message/payload_sink.h"

namespace muster {
namespace {

// Frames received from one lane before the others are served.
constexpr int kFrameCountMax = 64;

// Makes progress on one lane. Returns true if the lane is finished: the abort
// is sent, or the lane has failed.
bool IsFinished(AbortTarget& leaving, OutgoingFrame& abort) {
  if (leaving.unfinished != nullptr) {
    const absl::StatusOr<bool> is_sent =
        leaving.lane->Send(*leaving.unfinished);
    if (!is_sent.ok()) return true;
    if (*is_sent) leaving.unfinished = nullptr;
  }
  if (leaving.unfinished == nullptr) {
    const absl::StatusOr<bool> is_sent = leaving.lane->Send(abort);
    if (!is_sent.ok() || *is_sent) return true;
  }
  DiscardSink discard;
  for (int frame_count = 0; frame_count < kFrameCountMax; ++frame_count) {
    const absl::StatusOr<const FrameHeader*> header = leaving.lane->NextFrame();
    if (!header.ok()) return true;
    if (*header == nullptr) return false;
    const absl::StatusOr<bool> is_received =
        leaving.lane->ReceivePayload(discard);
    if (!is_received.ok()) return true;
    if (!*is_received) return false;
  }
  return false;
}

}  // namespace

void AbortLanes(std::vector<AbortTarget> lanes, uint64_t generation,
                uint64_t sequence, const absl::Status& status,
                absl::Duration timeout, LaneWaker& waker) {
  const std::string payload = EncodeAbort(status);
  std::vector<OutgoingFrame> aborts(lanes.size());
  for (OutgoingFrame& abort : aborts) {
    abort.header.kind = FrameKind::kAbort;
    abort.header.generation = generation;
    abort.header.sequence = sequence;
    abort.header.payload_bytes = payload.size();
    abort.payload = reinterpret_cast<const uint8_t*>(payload.data());
  }
  const absl::Time give_up_time = Clock::Real()->Now() + timeout;
  std::vector<bool> is_finished(lanes.size());
  std::vector<pollfd> poll_fds;
  while (Clock::Real()->Now() < give_up_time) {
    poll_fds.assign(1, {waker.fd(), POLLIN, 0});
    waker.Arm();
    for (size_t i = 0; i < lanes.size(); ++i) {
      if (is_finished[i]) continue;
      is_finished[i] = IsFinished(lanes[i], aborts[i]);
      if (!is_finished[i]) {
        poll_fds.push_back({lanes[i].lane->fd(), POLLIN | POLLOUT, 0});
      }
    }
    if (poll_fds.size() > 1) {
      poll(poll_fds.data(), poll_fds.size(),
           PollTimeoutMilliseconds(give_up_time - Clock::Real()->Now()));
    }
    waker.Disarm();
    if (poll_fds.size() == 1) break;
  }
  for (const AbortTarget& leaving : lanes) leaving.lane->Close();
}

}  // namespace muster
