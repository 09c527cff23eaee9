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

// A TCP lane is lost if the peer's host acknowledges nothing for this long.
// Owners of lanes may set another timeout.
inline constexpr absl::Duration kLaneSilenceTimeout = absl::Seconds(30);

// Memory for the rest of a payload.
class PayloadMemory {
 public:
  virtual ~PayloadMemory() = default;

  // Address for the next bytes. After writing some, the caller passes their
  // number to Wrote().
  virtual uint8_t* next() = 0;
  virtual void Wrote(size_t size_bytes) = 0;
};

// Takes the payload of a frame as it arrives.
class PayloadSink {
 public:
  virtual ~PayloadSink() = default;

  // Memory into which the caller may write the payload instead of calling
  // Take(), or null if the sink must process the bytes in Take().
  virtual PayloadMemory* memory() = 0;

  // Takes the next bytes, in order. They may be split anywhere.
  virtual void Take(const uint8_t* data, size_t size_bytes) = 0;
};

// A frame that is being sent. The sender fills all fields except `sent_bytes`,
// which the lane updates.
struct OutgoingFrame {
  FrameHeader header;
  const uint8_t* payload = nullptr;  // Has header.payload_bytes bytes.
  // Keeps the payload alive. If null, the payload may be freed after an error,
  // so a lane that reads it after Send() must copy it.
  std::shared_ptr<const void> payload_owner;

  size_t sent_bytes = 0;
};

// A connection between two ranks. Frames arrive exactly once and in the order
// in which the peer sent them; otherwise the lane is lost.
//
// No function blocks. One thread sends and receives on all lanes of a group. It
// calls each lane in turn and, if none makes progress, sleeps in poll() on the
// lanes' descriptors and on the waker.
//
// Every error is final and means that the lane is lost:
//   kUnavailable      the peer is gone, or the connection is broken
//   kInvalidArgument  the received bytes are not a frame
// Not thread-safe.
class Lane {
 public:
  virtual ~Lane() = default;  // As Close().

  // "raw TCP", "raw Unix socket", "gRPC", "memory".
  virtual std::string transport() const = 0;

  // True if both ranks share the processors of one host.
  virtual bool is_same_host() const = 0;

  // A lane without a descriptor calls waker->Wake() whenever it can make
  // progress. Called once, before any other function. `waker` must outlive the
  // last use of the lane.
  virtual void SetWaker(LaneWaker* waker) = 0;

  // Descriptor for poll(), or -1 if there is none. The caller polls it for
  // input, unless it has left a received frame on the lane, and for output
  // while the Send() of a frame is unfinished.
  virtual int fd() const = 0;

  // Continues sending `frame`. Returns true when the lane has taken all of it;
  // until then, the next call must pass the same frame.
  virtual absl::StatusOr<bool> Send(OutgoingFrame& frame) = 0;

  // True if the lane still reads from payloads that it has taken.
  virtual bool HoldsPayloads() const = 0;

  // Returns the header of the next frame, or null if it has not arrived yet.
  // Returns the same header, which stays valid, until ReceivePayload() has
  // received its payload.
  virtual absl::StatusOr<const FrameHeader*> NextFrame() = 0;

  // Passes the bytes that have arrived of the next frame's payload to `sink`.
  // Returns true when the payload is complete, which ends the frame. Also
  // called for an empty payload.
  virtual absl::StatusOr<bool> ReceivePayload(PayloadSink& sink) = 0;

  // Looks for an abort from the peer; called when poll() reports that the peer
  // has closed the lane. Returns the status of the abort, even if frames that
  // were not received precede it. Returns OK if there is none.
  virtual absl::Status FindAbort() = 0;

  // Closes the lane after the data that was sent has been transmitted. Does not
  // wait.
  virtual void Close() = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_LANE_H_
