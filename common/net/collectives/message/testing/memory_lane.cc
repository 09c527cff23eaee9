#include "common/net/collectives/message/testing/memory_lane.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace muster {
namespace {

struct StoredFrame {
  FrameHeader header;
  std::vector<uint8_t> payload;
};

// State that both ends share. Each End holds what it receives.
struct Wire {
  explicit Wire(size_t bytes_max) : bytes_max(bytes_max) {}

  const size_t bytes_max;
  absl::Mutex mutex;
  struct End {
    std::deque<StoredFrame> inbox;
    size_t inbox_bytes = 0;
    LaneWaker* waker = nullptr;
    bool is_closed = false;
  };
  End ends[2] ABSL_GUARDED_BY(mutex);
};

class MemoryLane final : public Lane {
 public:
  MemoryLane(std::shared_ptr<Wire> wire, int self)
      : wire_(std::move(wire)), self_(self), other_(1 - self) {}
  ~MemoryLane() override { Close(); }

  std::string transport() const override { return "memory"; }
  bool is_same_host() const override { return true; }

  void SetWaker(LaneWaker* waker) override {
    absl::MutexLock lock(&wire_->mutex);
    wire_->ends[self_].waker = waker;
  }

  int fd() const override { return -1; }

  absl::StatusOr<bool> Send(OutgoingFrame& frame) override {
    absl::MutexLock lock(&wire_->mutex);
    Wire::End& other = wire_->ends[other_];
    if (other.is_closed || wire_->ends[self_].is_closed) return Closed();
    const size_t size_bytes = frame.header.payload_bytes;
    if (!other.inbox.empty() &&
        other.inbox_bytes + size_bytes > wire_->bytes_max) {
      return false;
    }
    other.inbox.push_back(
        {frame.header, {frame.payload, frame.payload + size_bytes}});
    other.inbox_bytes += size_bytes;
    if (other.waker != nullptr) other.waker->Wake();
    return true;
  }

  bool HoldsPayloads() const override { return false; }

  absl::StatusOr<const FrameHeader*> NextFrame() override {
    if (next_.has_value()) return &next_->header;
    absl::MutexLock lock(&wire_->mutex);
    Wire::End& self = wire_->ends[self_];
    if (self.inbox.empty()) {
      if (self.is_closed || wire_->ends[other_].is_closed) return Closed();
      return nullptr;
    }
    next_ = std::move(self.inbox.front());
    self.inbox.pop_front();
    self.inbox_bytes -= next_->payload.size();
    // The inbox has room again, so the sender can continue.
    LaneWaker* const other_waker = wire_->ends[other_].waker;
    if (other_waker != nullptr) other_waker->Wake();
    return &next_->header;
  }

  absl::StatusOr<bool> ReceivePayload(PayloadSink& sink) override {
    sink.Take(next_->payload.data(), next_->payload.size());
    next_.reset();
    return true;
  }

  absl::Status FindAbort() override {
    absl::MutexLock lock(&wire_->mutex);
    for (const StoredFrame& frame : wire_->ends[self_].inbox) {
      if (frame.header.kind != FrameKind::kAbort) continue;
      return DecodeAbort({reinterpret_cast<const char*>(frame.payload.data()),
                          frame.payload.size()});
    }
    return absl::OkStatus();
  }

  void Close() override {
    absl::MutexLock lock(&wire_->mutex);
    wire_->ends[self_].is_closed = true;
    wire_->ends[self_].waker = nullptr;
    LaneWaker* const other_waker = wire_->ends[other_].waker;
    if (other_waker != nullptr) other_waker->Wake();
  }

 private:
  static absl::Status Closed() {
    return absl::UnavailableError("it has left the group");
  }

  const std::shared_ptr<Wire> wire_;
  const int self_;
  const int other_;
  std::optional<StoredFrame> next_;
};

}  // namespace

std::pair<std::unique_ptr<Lane>, std::unique_ptr<Lane>> MakeMemoryLane(
    size_t bytes_max) {
  auto wire = std::make_shared<Wire>(bytes_max);
  return {std::make_unique<MemoryLane>(wire, 0),
          std::make_unique<MemoryLane>(wire, 1)};
}

std::vector<std::vector<std::unique_ptr<Lane>>> MakeMemoryLanes(int size) {
  std::vector<std::vector<std::unique_ptr<Lane>>> lanes(size);
  for (auto& row : lanes) row.resize(size);
  for (int rank = 0; rank < size; ++rank) {
    for (int peer = 0; peer < rank; ++peer) {
      std::tie(lanes[rank][peer], lanes[peer][rank]) = MakeMemoryLane();
    }
  }
  return lanes;
}

}  // namespace muster
