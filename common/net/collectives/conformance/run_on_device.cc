#include "common/net/collectives/conformance/run_on_device.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

// Runs each collective of the suite on the device: copies the suite's buffer to
// the device on a stream, starts the collective of DeviceCommunicator, and
// copies the result back, ordered by events.
class OnDevice final : public Communicator {
 public:
  static absl::StatusOr<std::unique_ptr<Communicator>> Make(
      std::unique_ptr<DeviceCommunicator> communicator,
      std::unique_ptr<Communicator> borrowed) {
    auto made = std::make_unique<OnDevice>();
    made->borrowed_ = std::move(borrowed);
    Device& device = communicator->device();
    made->communicator_ = std::move(communicator);
    ASSIGN_OR_RETURN(made->ready_, device.CreateEvent());
    ASSIGN_OR_RETURN(made->done_, device.CreateEvent());
    ASSIGN_OR_RETURN(made->stream_, device.CreateStream());
    return made;
  }

  int rank() const override { return communicator_->rank(); }
  int size() const override { return communicator_->size(); }
  uint64_t generation() const override { return communicator_->generation(); }
  std::string transport() const override { return communicator_->transport(); }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override {
    return communicator_->Allocate(size_bytes, call);
  }
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override {
    return With(buffer, [&](TensorSpan on_device) {
      return communicator_->StartAllReduce(op, on_device, *ready_, done_.get(),
                                           call);
    });
  }
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override {
    return With(buffer, [&](TensorSpan on_device) {
      return communicator_->StartReduceScatter(op, on_device, *ready_,
                                               done_.get(), call);
    });
  }
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override {
    int64_t begin = 0;
    for (int r = 0; r < rank(); ++r) begin += element_counts[r];
    const TensorSpan own = output.Part(begin, begin + input.element_count);
    if (own.size_bytes() > 0 && own.data != input.data) {
      std::memcpy(own.data, input.data, own.size_bytes());
    }
    return With(output, [&](TensorSpan on_device) {
      return communicator_->StartAllGather(element_counts, on_device, *ready_,
                                           done_.get(), call);
    });
  }
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override {
    return With(buffer, [&](TensorSpan on_device) {
      return communicator_->StartBroadcast(on_device, root, *ready_,
                                           done_.get(), call);
    });
  }
  absl::Status Barrier(const CollectiveCall& call) override {
    return communicator_->Barrier(call);
  }
  void Abort(absl::Status status) override {
    communicator_->Abort(std::move(status));
  }
  CollectiveProgress Progress() const override {
    return communicator_->Progress();
  }

 private:
  template <typename StartFunction>
  absl::Status With(TensorSpan buffer, StartFunction start) {
    ASSIGN_OR_RETURN(
        const std::shared_ptr<Buffer> memory,
        communicator_->device().memory().Allocate(
            buffer.size_bytes() + 1, {.what = "buffer", .name = "suite"}));
    const TensorSpan on_device{buffer.dtype, buffer.element_count,
                               memory->data()};
    RETURN_IF_ERROR(
        stream_->Copy(buffer.data, on_device.data, buffer.size_bytes()));
    RETURN_IF_ERROR(stream_->Record(ready_.get()));
    RETURN_IF_ERROR(start(on_device));
    // The copy is enqueued before the collective is done.
    ASSIGN_OR_RETURN(
        const std::shared_ptr<Buffer> result,
        communicator_->device().pinned_memory().Allocate(buffer.size_bytes()));
    RETURN_IF_ERROR(stream_->Wait(*done_));
    RETURN_IF_ERROR(
        stream_->Copy(on_device.data, result->data(), buffer.size_bytes()));
    const absl::Status status = communicator_->Await();
    // The memory is freed only after the stream has stopped using it, also
    // after an error.
    RETURN_IF_ERROR(stream_->Drain(absl::InfiniteFuture(), "the suite"));
    RETURN_IF_ERROR(status);
    if (buffer.size_bytes() > 0) {
      std::memcpy(buffer.data, result->data(), buffer.size_bytes());
    }
    return absl::OkStatus();
  }

  std::unique_ptr<Communicator> borrowed_;  // May be null.
  std::unique_ptr<DeviceCommunicator> communicator_;
  std::unique_ptr<Event> ready_;
  std::unique_ptr<Event> done_;
  std::unique_ptr<DeviceStream> stream_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> RunOnDevice(
    std::unique_ptr<DeviceCommunicator> communicator,
    std::unique_ptr<Communicator> borrowed) {
  return OnDevice::Make(std::move(communicator), std::move(borrowed));
}

}  // namespace muster
