#include "common/core/device/stream.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_context.h"
#include "common/core/system/clock.h"

namespace muster {
namespace {

// A paused thread wakes up late, by more than the step of a small model takes.
// So short waits do not pause, and a pause lasts a fraction of the wait so far.
constexpr absl::Duration kSpinTime = absl::Milliseconds(1);
constexpr int kWaitsPerPause = 16;
constexpr absl::Duration kPauseMax = absl::Milliseconds(1);

void Pause(absl::Duration duration) {
  static absl::Mutex mutex;
  const bool never = false;
  const absl::MutexLock lock(&mutex);
  Clock::Real()->AwaitWithDeadline(&mutex, absl::Condition(&never),
                                   Clock::Real()->Now() + duration);
}

driver::Address AddressOf(const void* pointer) {
  return reinterpret_cast<driver::Address>(pointer);
}

}  // namespace

Event::~Event() {
  // No caller can act on an error.
  (void)context_.TryCall(context_.api().cuEventDestroy_v2, handle_);
}

absl::StatusOr<bool> Event::IsReached() const {
  const driver::Result result =
      context_.TryCall(context_.api().cuEventQuery, handle_);
  if (result == driver::kSuccess) return true;
  if (result == driver::kNotReady) return false;
  return context_.ToStatus(result, "cuEventQuery");
}

absl::StatusOr<absl::Duration> Event::TimeSince(const Event& earlier) const {
  float milliseconds = 0;
  RETURN_IF_ERROR(context_.Call("cuEventElapsedTime",
                                context_.api().cuEventElapsedTime,
                                &milliseconds, earlier.handle_, handle_));
  return absl::Milliseconds(milliseconds);
}

DeviceStream::~DeviceStream() {
  // The caller may free memory that the work uses. If the device is lost, the
  // driver returns at once.
  (void)context_.TryCall(context_.api().cuStreamSynchronize, handle_);
  (void)context_.TryCall(context_.api().cuStreamDestroy_v2, handle_);
}

absl::Status DeviceStream::Copy(const void* from, void* to, size_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  if (WorkRecorder* const taker = recorder(); taker != nullptr) {
    return taker->AddCopy(from, to, size_bytes);
  }
  return context_.Call("cuMemcpyAsync", context_.api().cuMemcpyAsync,
                       AddressOf(to), AddressOf(from), size_bytes, handle_);
}

absl::Status DeviceStream::Copy(const Tensor& from, Tensor* to) {
  MUSTER_CHECK(from.dtype() == to->dtype() && from.shape() == to->shape());
  MUSTER_CHECK(from.dtype() != DType::kString);
  return Copy(from.address(), to->address(), from.size_bytes());
}

absl::Status DeviceStream::CopyFromPeer(const DeviceContext& peer,
                                        const void* from, void* to,
                                        size_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  RETURN_IF_ERROR(Flush());
  return context_.Call("cuMemcpyPeerAsync", context_.api().cuMemcpyPeerAsync,
                       AddressOf(to), context_.handle(), AddressOf(from),
                       peer.handle(), size_bytes, handle_);
}

absl::Status DeviceStream::Fill(void* to, uint8_t byte, size_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  if (WorkRecorder* const taker = recorder(); taker != nullptr) {
    return taker->AddFill(to, byte, size_bytes);
  }
  return context_.Call("cuMemsetD8Async", context_.api().cuMemsetD8Async,
                       AddressOf(to), byte, size_bytes, handle_);
}

absl::Status DeviceStream::Launch(const KernelFunction& kernel,
                                  const LaunchShape& shape,
                                  absl::Span<const KernelArgument> arguments) {
  if (WorkRecorder* const taker = recorder(); taker != nullptr) {
    return taker->AddLaunch(kernel, shape, arguments);
  }
  absl::InlinedVector<void*, 4> addresses;
  for (const KernelArgument& argument : arguments) {
    addresses.push_back(const_cast<void*>(argument.address));
  }
  driver::LaunchAttribute begins_early;
  const driver::LaunchConfiguration configuration = {
      .grid = {shape.grid[0], shape.grid[1], shape.grid[2]},
      .block = {shape.block[0], shape.block[1], shape.block[2]},
      .shared_bytes = shape.shared_bytes,
      .stream = handle_,
      .attributes = &begins_early,
      .attribute_count = context_.overlaps_launches() ? 1u : 0u};
  return context_.Call(kernel.name(), context_.api().cuLaunchKernelEx,
                       &configuration, kernel.handle(), addresses.data(),
                       nullptr);
}

absl::Status DeviceStream::AddToRecorder(LibraryCall call) {
  return recorder()->AddLibraryCall(std::move(call));
}

absl::Status DeviceStream::Flush() {
  WorkRecorder* const taker = recorder();
  return taker == nullptr ? absl::OkStatus() : taker->Flush();
}

absl::Status DeviceStream::Record(Event* event) {
  RETURN_IF_ERROR(Flush());
  return context_.Call("cuEventRecord", context_.api().cuEventRecord,
                       event->handle(), handle_);
}

absl::Status DeviceStream::Wait(const Event& event) {
  RETURN_IF_ERROR(Flush());
  return context_.Call("cuStreamWaitEvent", context_.api().cuStreamWaitEvent,
                       handle_, event.handle(), 0u);
}

absl::Status AwaitEvent(DeviceContext* context, const Event& event,
                        absl::Time deadline, absl::string_view what) {
  const absl::Time start = Clock::Real()->Now();
  while (true) {
    ASSIGN_OR_RETURN(const bool is_reached, event.IsReached());
    if (is_reached) return absl::OkStatus();
    const absl::Time now = Clock::Real()->Now();
    if (now >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(context->name(), " has not finished ", what, " after ",
                       absl::FormatDuration(now - start)));
    }
    if (now - start < kSpinTime) {
      std::this_thread::yield();
      continue;
    }
    Pause(
        std::min({(now - start) / kWaitsPerPause, kPauseMax, deadline - now}));
  }
}

absl::Status DeviceStream::Await(const Event& event, absl::Time deadline,
                                 absl::string_view what) {
  return AwaitEvent(&context_, event, deadline, what);
}

absl::Status DeviceStream::Drain(absl::Time deadline, absl::string_view what) {
  RETURN_IF_ERROR(Record(drained_.get()));
  return Await(*drained_, deadline, what);
}

}  // namespace muster
