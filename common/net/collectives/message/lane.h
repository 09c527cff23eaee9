#ifndef COMMON_NET_COLLECTIVES_MESSAGE_LANE_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_LANE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/message/waker.h"

namespace muster {

// A lane over TCP is lost when the other end's host acknowledges nothing for
// this long, unless its owner says otherwise.
inline constexpr absl::Duration kLaneSilenceTimeout = absl::Seconds(30);

// Memory for the rest of a payload.
class PayloadMemory {
 public:
  virtual ~PayloadMemory() = default;

  // Where the next bytes belong. The caller tells Wrote() how many it has
  // written there.
  virtual uint8_t* next() = 0;
  virtual void Wrote(size_t size_bytes) = 0;
};

// Takes the payload of a frame as it arrives.
class PayloadSink {
 public:
  virtual ~PayloadSink() = default;

  // Where the payload may be written to without Take(); null if Take() has to
  // look at it.
  virtual PayloadMemory* memory() = 0;

  // The next bytes, in order, split anywhere.
  virtual void Take(const uint8_t* data, size_t size_bytes) = 0;
};

// One frame on its way out. Filled by the sender; `sent_bytes` belongs to the
// lane.
struct OutgoingFrame {
  FrameHeader header;
  const uint8_t* payload = nullptr;  // header.payload_bytes.
  // Keeps the payload alive. Null: it may be gone after an error, so a lane
  // that would continue reading it has to copy.
  std::shared_ptr<const void> payload_owner;

  size_t sent_bytes = 0;
};

// The way between two ranks: frames arrive in the order in which the other end
// sent them, none is lost, and none comes twice, or the lane is lost.
//
// Nothing here waits. One thread moves all lanes of a group: it asks each one
// to continue, and sleeps in poll() on their descriptors and on the waker when
// none of them could.
//
// Every error is final and means that the lane is lost:
//   kUnavailable      the other end is gone, or the wire is broken
//   kInvalidArgument  what came is no frame
// Not thread-safe.
class Lane {
 public:
  virtual ~Lane() = default;  // As Close().

  // "raw TCP", "raw Unix socket", "gRPC", "memory".
  virtual std::string transport() const = 0;

  // True if both ends compute on the same processors.
  virtual bool is_same_host() const = 0;

  // A lane without a descriptor calls waker->Wake() whenever it could continue.
  // Called once, before anything else; `waker` outlives the lane's last use.
  virtual void SetWaker(LaneWaker* waker) = 0;

  // For poll(); -1 when there is none. Wants to be asked again when readable,
  // unless a frame is waiting to be taken, and when writable, while Send() of
  // some frame is not done.
  virtual int fd() const = 0;

  // Continues with sending `frame`; whether the lane has taken it all. Until
  // then the next call is about the same frame.
  virtual absl::StatusOr<bool> Send(OutgoingFrame& frame) = 0;

  // True if the lane still reads from payloads that it has taken.
  virtual bool HoldsPayloads() const = 0;

  // The header of the next frame, or null when it has not arrived yet. The same
  // one until its payload has been received; valid as long.
  virtual absl::StatusOr<const FrameHeader*> NextFrame() = 0;

  // Gives what has arrived of the next frame's payload to `sink`; whether it
  // was the rest. Then the frame is done with. For a payload of no bytes, too.
  virtual absl::StatusOr<bool> ReceivePayload(PayloadSink& sink) = 0;

  // poll() says that the other end has closed the lane. When it did so with an
  // abort, returns the abort's status, even if frames that were not received
  // stand before it. Otherwise OK.
  virtual absl::Status FindAbort() = 0;

  // Lets what was sent go out, and then closes. Does not wait.
  virtual void Close() = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_LANE_H_
