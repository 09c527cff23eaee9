#include "common/net/collectives/on_device/staged_communicator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/clock.h"
#include "common/core/base/log.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

class StagedCommunicator final : public DeviceCommunicator {
 public:
  StagedCommunicator(Communicator* host, Device* device,
                     std::unique_ptr<DeviceStream> stream)
      : host_(*host), device_(*device), stream_(std::move(stream)) {}

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  uint64_t generation() const override { return host_.generation(); }
  std::string transport() const override { return host_.transport(); }
  Device& device() const override { return device_; }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override {
    return host_.Allocate(size_bytes, call);
  }
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override {
    return host_.AllReduce(op, buffer, call);
  }
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override {
    return host_.ReduceScatter(op, buffer, call);
  }
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override {
    return host_.AllGather(input, element_counts, output, call);
  }
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override {
    return host_.Broadcast(buffer, root, call);
  }
  absl::Status Barrier(const CollectiveCall& call) override {
    return host_.Barrier(call);
  }
  void Abort(absl::Status status) override { host_.Abort(std::move(status)); }
  CollectiveProgress Progress() const override { return host_.Progress(); }

  absl::StatusOr<std::shared_ptr<Buffer>> AllocateOnDevice(
      size_t size_bytes, const CollectiveCall& call) override;

  absl::Status StartAllReduce(ReduceOp op, TensorSpan buffer,
                              const Event& ready, Event* done,
                              const CollectiveCall& call) override {
    return OnStage(
        buffer, buffer, buffer,
        [&](TensorSpan stage) { return host_.AllReduce(op, stage, call); },
        ready, done, call);
  }
  absl::Status StartReduceScatter(ReduceOp op, TensorSpan buffer,
                                  const Event& ready, Event* done,
                                  const CollectiveCall& call) override {
    const Range own = PartOf(buffer.element_count, rank(), size());
    return OnStage(
        buffer, buffer, buffer.Part(own.begin, own.end),
        [&](TensorSpan stage) { return host_.ReduceScatter(op, stage, call); },
        ready, done, call);
  }
  absl::Status StartAllGather(absl::Span<const int64_t> element_counts,
                              TensorSpan buffer, const Event& ready,
                              Event* done, const CollectiveCall& call) override;
  absl::Status StartBroadcast(TensorSpan buffer, int root, const Event& ready,
                              Event* done,
                              const CollectiveCall& call) override {
    const TensorSpan nothing = buffer.Part(0, 0);
    const bool is_root = rank() == root;
    return OnStage(
        buffer, is_root ? buffer : nothing, is_root ? nothing : buffer,
        [&](TensorSpan stage) { return host_.Broadcast(stage, root, call); },
        ready, done, call);
  }
  // The host has done its part when a collective is started.
  void UseEndWord(std::shared_ptr<Buffer>) override {}
  absl::Status Await() override {
    return stream_->Drain(std::max(deadline_, Clock::Real()->Now()),
                          "the copies of collectives' results");
  }

 private:
  struct Stage {
    std::weak_ptr<Buffer> on_device;
    std::shared_ptr<Buffer> on_host;
    std::shared_ptr<void> pinned;  // `on_host`; null: it could not be pinned.
  };

  // Copies `download` of `buffer` to the stage, runs `collective` there, and
  // copies `upload` back.
  absl::Status OnStage(
      TensorSpan buffer, TensorSpan download, TensorSpan upload,
      absl::FunctionRef<absl::Status(TensorSpan stage)> collective,
      const Event& ready, Event* done, const CollectiveCall& call);
  // Memory of the host that stands for `buffer`.
  absl::StatusOr<uint8_t*> StageOf(const TensorSpan& buffer);

  Communicator& host_;
  Device& device_;
  std::vector<Stage> stages_;                   // Of AllocateOnDevice().
  std::shared_ptr<Buffer> scratch_;             // Pinned, for all other memory.
  const std::unique_ptr<DeviceStream> stream_;  // Ends before what it uses.
  absl::Time deadline_ = absl::InfinitePast();  // Of what has been started.
  bool has_told_ = false;  // That memory could not be pinned.
};

absl::StatusOr<std::shared_ptr<Buffer>> StagedCommunicator::AllocateOnDevice(
    size_t size_bytes, const CollectiveCall& call) {
  std::erase_if(stages_,
                [](const Stage& stage) { return stage.on_device.expired(); });
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> on_host,
                   host_.Allocate(size_bytes, call));
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> on_device,
                   DeviceCommunicator::AllocateOnDevice(size_bytes, call));
  std::shared_ptr<void> pinned;
  if (size_bytes > 0) {
    auto made = device_.pinned_memory().Pin(on_host->data(), size_bytes);
    if (made.ok()) pinned = *std::move(made);
    if (!made.ok() && !std::exchange(has_told_, true)) {
      LOG(INFO) << device_.name() << ": collectives are slower, because memory "
                << "of the host cannot be pinned: " << made.status().message();
    }
  }
  stages_.push_back({on_device, std::move(on_host), std::move(pinned)});
  return on_device;
}

absl::Status StagedCommunicator::StartAllGather(
    absl::Span<const int64_t> element_counts, TensorSpan buffer,
    const Event& ready, Event* done, const CollectiveCall& call) {
  int64_t begin = 0;
  for (int r = 0; r < rank(); ++r) begin += element_counts[r];
  const int64_t end = begin + element_counts[rank()];
  return OnStage(
      buffer, buffer.Part(begin, end), buffer,
      [&](TensorSpan stage) {
        return host_.AllGather(stage.Part(begin, end), element_counts, stage,
                               call);
      },
      ready, done, call);
}

absl::Status StagedCommunicator::OnStage(
    TensorSpan buffer, TensorSpan download, TensorSpan upload,
    absl::FunctionRef<absl::Status(TensorSpan stage)> collective,
    const Event& ready, Event* done, const CollectiveCall& call) {
  const absl::Time deadline = Clock::Real()->Now() + call.timeout;
  deadline_ = std::max(deadline_, deadline);
  ASSIGN_OR_RETURN(uint8_t* const data, StageOf(buffer));
  const TensorSpan stage{buffer.dtype, buffer.element_count, data};
  const auto on_stage = [&](const TensorSpan& part) {
    return data + (part.bytes() - buffer.bytes());
  };
  RETURN_IF_ERROR(stream_->Wait(ready));
  absl::Status copied =
      stream_->Copy(download.data, on_stage(download), download.size_bytes());
  // Also after an error: the stage is in use until then.
  copied.Update(stream_->Drain(
      deadline, absl::StrCat("what ", call.name, " is computed from")));
  RETURN_IF_ERROR(copied);
  RETURN_IF_ERROR(collective(stage));
  RETURN_IF_ERROR(
      stream_->Copy(on_stage(upload), upload.data, upload.size_bytes()));
  return stream_->Record(done);
}

absl::StatusOr<uint8_t*> StagedCommunicator::StageOf(const TensorSpan& buffer) {
  for (const Stage& stage : stages_) {
    const std::shared_ptr<Buffer> on_device = stage.on_device.lock();
    if (on_device == nullptr || buffer.bytes() < on_device->data()) continue;
    const size_t offset = buffer.bytes() - on_device->data();
    if (offset + buffer.size_bytes() <= stage.on_host->size_bytes()) {
      return stage.on_host->data() + offset;
    }
  }
  if (scratch_ == nullptr || scratch_->size_bytes() < buffer.size_bytes()) {
    // A copy from it may be under way.
    RETURN_IF_ERROR(Await());
    ASSIGN_OR_RETURN(scratch_,
                     device_.pinned_memory().Allocate(buffer.size_bytes()));
  }
  return scratch_->data();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceCommunicator>> StageOverHost(
    Communicator* host, Device* device) {
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceStream> stream,
                   device->CreateStream());
  return std::make_unique<StagedCommunicator>(host, device, std::move(stream));
}

}  // namespace muster
