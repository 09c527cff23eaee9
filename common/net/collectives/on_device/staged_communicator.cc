#include "common/net/collectives/on_device/staged_communicator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

using Range = Communicator::Range;

// Copies take milliseconds once they have begun. After an error, the
// communicator waits this long for them even if the deadline has passed, since
// the error may be the expired deadline.
constexpr absl::Duration kCopiesMax = absl::Seconds(1);

class StagedCommunicator final : public DeviceCommunicator {
 public:
  StagedCommunicator(Communicator* host, Device* device, HostCalls host_calls,
                     std::unique_ptr<DeviceStream> to_host,
                     std::unique_ptr<DeviceStream> to_device)
      : host_(*host),
        device_(*device),
        host_calls_(host_calls),
        to_host_(std::move(to_host)),
        to_device_(std::move(to_device)) {}

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
    const Range all{0, buffer.element_count};
    return OnStage(
        {buffer, all, all, ChunkElements(buffer)},
        [&](TensorSpan chunk, const CollectiveCall& rest) {
          return host_.AllReduce(op, chunk, rest);
        },
        ready, done, call);
  }
  absl::Status StartReduceScatter(ReduceOp op, TensorSpan buffer,
                                  const Event& ready, Event* done,
                                  const CollectiveCall& call) override {
    return OnStage(
        {buffer,
         {0, buffer.element_count},
         PartOf(buffer.element_count, rank(), size()),
         buffer.element_count},
        [&](TensorSpan stage, const CollectiveCall& rest) {
          return host_.ReduceScatter(op, stage, rest);
        },
        ready, done, call);
  }
  absl::Status StartAllGather(absl::Span<const int64_t> element_counts,
                              TensorSpan buffer, const Event& ready,
                              Event* done, const CollectiveCall& call) override;
  absl::Status StartBroadcast(TensorSpan buffer, int root, const Event& ready,
                              Event* done,
                              const CollectiveCall& call) override {
    const Range all{0, buffer.element_count};
    const bool is_root = rank() == root;
    return OnStage(
        {buffer, is_root ? all : Range(), is_root ? Range() : all,
         ChunkElements(buffer)},
        [&](TensorSpan chunk, const CollectiveCall& rest) {
          return host_.Broadcast(chunk, root, rest);
        },
        ready, done, call);
  }
  // A started collective cannot fail: the host has already done its part.
  void UseEndWord(std::shared_ptr<Buffer>) override {}
  absl::Status Await() override {
    return to_host_->Drain(std::max(deadline_, Clock::Real()->Now()),
                           "the copies of collectives' results");
  }

 private:
  struct Stage {
    std::weak_ptr<Buffer> on_device;
    std::shared_ptr<Buffer> on_host;
    std::shared_ptr<void> pinned;  // `on_host`; null if it could not be pinned.
  };

  // A collective. Ranges are elements of `buffer`.
  struct Work {
    TensorSpan buffer;
    Range download;  // Elements that it reads.
    Range upload;    // Elements that it changes.
    int64_t chunk_elements = 0;

    int chunk_count() const;
    Range chunk(int k) const;
  };
  // Runs the collective of `host_` on one chunk.
  using HostPart = absl::FunctionRef<absl::Status(TensorSpan chunk,
                                                  const CollectiveCall& rest)>;

  int64_t ChunkElements(const TensorSpan& buffer) const {
    return host_calls_ == HostCalls::kInChunks
               ? kStagedChunkBytes / std::max<int64_t>(SizeOf(buffer.dtype), 1)
               : buffer.element_count;
  }

  // Copies each chunk to the stage, runs `host_part` there, and copies the
  // chunk back.
  absl::Status OnStage(const Work& work, HostPart host_part, const Event& ready,
                       Event* done, const CollectiveCall& call);
  absl::Status RunChunks(const Work& work, uint8_t* stage, HostPart host_part,
                         const Event& ready, Event* done, absl::Time deadline,
                         absl::string_view name);
  absl::Status GrowEvents(int count);
  // Returns the host memory that is the stage of `buffer`.
  absl::StatusOr<uint8_t*> StageOf(const TensorSpan& buffer);

  Communicator& host_;
  Device& device_;
  const HostCalls host_calls_;
  std::vector<Stage> stages_;                   // Made by AllocateOnDevice().
  std::shared_ptr<Buffer> scratch_;             // Pinned, for all other memory.
  absl::Time deadline_ = absl::InfinitePast();  // Latest deadline of the
                                                // started collectives.
  bool has_logged_pin_error_ = false;  // It has been logged that memory could
                                       // not be pinned.
  // By chunk. Reached when the chunk has been copied to the host.
  std::vector<std::unique_ptr<Event>> arrived_;
  // Two streams, because a bus copies in both directions at once. They are
  // destroyed before the memory that they use. Work on to_host_ runs after the
  // work of earlier collectives on both streams.
  const std::unique_ptr<DeviceStream> to_host_;
  const std::unique_ptr<DeviceStream> to_device_;
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
    if (!made.ok() && !std::exchange(has_logged_pin_error_, true)) {
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
  Range own;
  for (int r = 0; r < rank(); ++r) own.begin += element_counts[r];
  own.end = own.begin + element_counts[rank()];
  return OnStage(
      {buffer, own, {0, buffer.element_count}, buffer.element_count},
      [&](TensorSpan stage, const CollectiveCall& rest) {
        return host_.AllGather(stage.Part(own.begin, own.end), element_counts,
                               stage, rest);
      },
      ready, done, call);
}

// Returns at least 1, because ranks wait for each other even if there are no
// elements.
int StagedCommunicator::Work::chunk_count() const {
  if (buffer.element_count <= chunk_elements) return 1;
  return static_cast<int>((buffer.element_count + chunk_elements - 1) /
                          chunk_elements);
}

Range StagedCommunicator::Work::chunk(int k) const {
  return {k * chunk_elements,
          std::min((k + 1) * chunk_elements, buffer.element_count)};
}

absl::Status StagedCommunicator::OnStage(const Work& work, HostPart host_part,
                                         const Event& ready, Event* done,
                                         const CollectiveCall& call) {
  const absl::Time deadline = Clock::Real()->Now() + call.timeout;
  deadline_ = std::max(deadline_, deadline);
  ASSIGN_OR_RETURN(uint8_t* const stage, StageOf(work.buffer));
  RETURN_IF_ERROR(GrowEvents(work.chunk_count()));
  const absl::Status status =
      RunChunks(work, stage, host_part, ready, done, deadline, call.name);
  if (status.ok()) return status;
  // Copies may use the stage and the buffer until the streams are drained.
  const absl::Time end = std::max(deadline, Clock::Real()->Now() + kCopiesMax);
  for (DeviceStream* const stream : {to_host_.get(), to_device_.get()}) {
    stream->Drain(end, "the copies of a collective").IgnoreError();
  }
  return status;
}

absl::Status StagedCommunicator::RunChunks(const Work& work, uint8_t* stage,
                                           HostPart host_part,
                                           const Event& ready, Event* done,
                                           absl::Time deadline,
                                           absl::string_view name) {
  const TensorSpan on_stage{work.buffer.dtype, work.buffer.element_count,
                            stage};
  const auto copy = [](DeviceStream& stream, TensorSpan from, TensorSpan to,
                       Range a, Range b) {
    const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
    if (both.begin >= both.end) return absl::OkStatus();
    return stream.Copy(from.Part(both.begin, both.end).data,
                       to.Part(both.begin, both.end).data,
                       to.Part(both.begin, both.end).size_bytes());
  };
  const int count = work.chunk_count();
  RETURN_IF_ERROR(to_host_->Wait(ready));
  for (int k = 0; k < count; ++k) {
    RETURN_IF_ERROR(
        copy(*to_host_, work.buffer, on_stage, work.download, work.chunk(k)));
    RETURN_IF_ERROR(to_host_->Record(arrived_[k].get()));
  }
  const std::string what = absl::StrCat("what ", name, " is computed from");
  for (int k = 0; k < count; ++k) {
    const Range chunk = work.chunk(k);
    RETURN_IF_ERROR(to_host_->Await(*arrived_[k], deadline, what));
    RETURN_IF_ERROR(host_part(on_stage.Part(chunk.begin, chunk.end),
                              {name, deadline - Clock::Real()->Now()}));
    RETURN_IF_ERROR(
        copy(*to_device_, on_stage, work.buffer, work.upload, chunk));
  }
  RETURN_IF_ERROR(to_device_->Record(done));
  return to_host_->Wait(*done);
}

absl::Status StagedCommunicator::GrowEvents(int count) {
  while (static_cast<int>(arrived_.size()) < count) {
    ASSIGN_OR_RETURN(arrived_.emplace_back(), device_.CreateEvent());
  }
  return absl::OkStatus();
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
    // A copy from the old scratch may be in progress.
    RETURN_IF_ERROR(Await());
    ASSIGN_OR_RETURN(scratch_,
                     device_.pinned_memory().Allocate(buffer.size_bytes()));
  }
  return scratch_->data();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceCommunicator>> StageOverHost(
    Communicator* host, Device* device, HostCalls host_calls) {
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceStream> to_host,
                   device->CreateStream());
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceStream> to_device,
                   device->CreateStream());
  return std::make_unique<StagedCommunicator>(
      host, device, host_calls, std::move(to_host), std::move(to_device));
}

}  // namespace muster
