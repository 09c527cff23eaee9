#ifndef COMMON_NET_COLLECTIVES_CONFORMANCE_LANE_DECORATOR_H_
#define COMMON_NET_COLLECTIVES_CONFORMANCE_LANE_DECORATOR_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/collectives/message/lane.h"

namespace muster {

// Forwards every call to another lane.
class LaneDecorator : public Lane {
 public:
  explicit LaneDecorator(std::unique_ptr<Lane> lane) : lane_(std::move(lane)) {}

  std::string transport() const override { return lane_->transport(); }
  bool is_same_host() const override { return lane_->is_same_host(); }
  void SetWaker(LaneWaker* waker) override { lane_->SetWaker(waker); }
  int fd() const override { return lane_->fd(); }
  absl::StatusOr<bool> Send(OutgoingFrame& frame) override {
    return lane_->Send(frame);
  }
  bool HoldsPayloads() const override { return lane_->HoldsPayloads(); }
  absl::StatusOr<const FrameHeader*> NextFrame() override {
    return lane_->NextFrame();
  }
  absl::StatusOr<bool> ReceivePayload(PayloadSink& sink) override {
    return lane_->ReceivePayload(sink);
  }
  absl::Status FindAbort() override { return lane_->FindAbort(); }
  void Close() override { lane_->Close(); }

 private:
  const std::unique_ptr<Lane> lane_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_LANE_DECORATOR_H_
