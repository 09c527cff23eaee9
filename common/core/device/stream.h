#ifndef COMMON_CORE_DEVICE_STREAM_H_
#define COMMON_CORE_DEVICE_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {

class DeviceContext;

// A kernel that a device has loaded: Device::FindKernel(). A value, cheap to
// copy; valid as long as the device.
class KernelFunction {
 public:
  KernelFunction() = default;  // Invalid.
  KernelFunction(driver::KernelHandle* handle, const char* name)
      : handle_(handle), name_(name) {}

  driver::KernelHandle* handle() const { return handle_; }
  const char* name() const { return name_; }

 private:
  driver::KernelHandle* handle_ = nullptr;
  const char* name_ = "";
};

// An argument of a launch: borrowed for the call.
struct KernelArgument {
  template <typename T>
  KernelArgument(const T* value)  // NOLINT: a list of addresses.
      : address(value), size_bytes(sizeof(T)) {}
  KernelArgument(const void* bytes, size_t count)
      : address(bytes), size_bytes(count) {}

  const void* address;
  size_t size_bytes;
};

// Work that a library enqueues by itself: the arguments of
// DeviceStream::Call().
struct LibraryCall {
  std::vector<const void*> identity;
  std::function<absl::Status(driver::StreamHandle*)> enqueue;
};

class WorkRecorder;

// A point in the work of a stream, set by DeviceStream::Record(). Before the
// first Record() it counts as reached. Made by Device::CreateEvent().
//
// Thread-safe. Equivalent to: CUevent.
class Event {
 public:
  Event(DeviceContext* context, driver::EventHandle* handle)
      : context_(*context), handle_(handle) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Returns whether the work before the last Record() is done. Does not block.
  // Repeated calls eventually return true, or the error of the work.
  absl::StatusOr<bool> IsReached() const;

  // Returns the time from `earlier` to this event on the device. Both were
  // created by Device::CreateTimedEvent(), and are reached.
  //   kInternal  one of them is not
  absl::StatusOr<absl::Duration> TimeSince(const Event& earlier) const;

  driver::EventHandle* handle() const { return handle_; }

 private:
  DeviceContext& context_;
  driver::EventHandle* const handle_;
};

// Blocks until `event` is reached. `what` names the work, for errors. The
// deadline is a time of Clock::Real().
//   kDeadlineExceeded  not reached in time; names the device and `what`
//   others             as DeviceContext::Call(): the work has failed
absl::Status AwaitEvent(DeviceContext* context, const Event& event,
                        absl::Time deadline, absl::string_view what);

// Work of a device, done in the order in which it is enqueued. Streams of one
// device run at the same time; Record() and Wait() order them. All functions
// but Await() and Drain() return before the work is done. An error of the work
// is reported by a later call of any stream of the device.
//
// Made by Device::CreateStream(). The device outlives it. Not thread-safe.
//
// Errors of all functions are those of DeviceContext::Call().
// Equivalent to: CUstream, se::Stream.
class DeviceStream {
 public:
  DeviceStream(DeviceContext* context, driver::StreamHandle* handle,
               std::unique_ptr<Event> drained)
      : context_(*context), handle_(handle), drained_(std::move(drained)) {}
  // Waits for the work.
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  // Copies between any two places. Pinned host memory and device memory must
  // stay unchanged, and must not be read, until the copy is done. A copy from
  // pageable host memory returns when the bytes have been read; a copy to it
  // returns when they have been written.
  absl::Status Copy(const void* from, void* to, size_t size_bytes);
  // Copies elements. `to` has the type of `from`; strings are not supported.
  absl::Status Copy(const Tensor& from, Tensor* to);

  // Copies from memory of another device to memory of this one.
  absl::Status CopyFromPeer(const DeviceContext& peer, const void* from,
                            void* to, size_t size_bytes);

  absl::Status Fill(void* to, uint8_t byte, size_t size_bytes);

  // Runs a kernel. The arguments are read before the call returns.
  absl::Status Launch(const KernelFunction& kernel, const LaunchShape& shape,
                      absl::Span<const KernelArgument> arguments);

  // Lets a library enqueue work: `enqueue` gets the driver's stream and returns
  // a status. It is called at once. If the stream has a recorder, it may be
  // called later and again, as long as the step's plan lives. Calls with the
  // same addresses in `identity` enqueue the same work. Allocates nothing
  // without a recorder.
  template <typename Enqueue>
  absl::Status Call(std::initializer_list<const void*> identity,
                    Enqueue enqueue) {
    if (recorder() == nullptr) return enqueue(handle_);
    return AddToRecorder({.identity = identity, .enqueue = std::move(enqueue)});
  }

  // Sets `event` to this point of the work.
  absl::Status Record(Event* event);

  // Later work of this stream begins after `event`, as it was last recorded.
  // The host does not wait.
  absl::Status Wait(const Event& event);

  // As AwaitEvent().
  absl::Status Await(const Event& event, absl::Time deadline,
                     absl::string_view what);

  // Blocks until all work that is enqueued here is done.
  // As AwaitEvent().
  absl::Status Drain(absl::Time deadline, absl::string_view what);

  // Passes the work of this thread to `recorder`; null: to the driver.
  void SetRecorder(WorkRecorder* recorder) {
    recorder_ = recorder;
    recording_thread_ =
        recorder == nullptr ? std::thread::id() : std::this_thread::get_id();
  }

  DeviceContext& context() const { return context_; }
  // For work that bypasses the recorder.
  driver::StreamHandle* handle() const { return handle_; }

 private:
  // Returns the recorder if this is its thread, otherwise null. Another thread
  // uses the stream when it frees memory: that records events.
  WorkRecorder* recorder() const {
    return recording_thread_.load(std::memory_order_relaxed) ==
                   std::this_thread::get_id()
               ? recorder_
               : nullptr;
  }
  // Requires a recorder.
  absl::Status AddToRecorder(LibraryCall call);
  // Enqueues the work that a recorder holds back.
  absl::Status Flush();

  DeviceContext& context_;
  driver::StreamHandle* const handle_;
  const std::unique_ptr<Event> drained_;
  std::atomic<std::thread::id> recording_thread_ = std::thread::id();
  WorkRecorder* recorder_ = nullptr;  // For recording_thread_ only.
};

// Takes the work of a stream in place of the driver. All functions are called
// by the thread that called SetRecorder(). Errors are those of DeviceStream.
class WorkRecorder {
 public:
  virtual ~WorkRecorder() = default;

  virtual absl::Status AddLaunch(
      const KernelFunction& kernel, const LaunchShape& shape,
      absl::Span<const KernelArgument> arguments) = 0;
  virtual absl::Status AddCopy(const void* from, void* to,
                               size_t size_bytes) = 0;
  virtual absl::Status AddFill(void* to, uint8_t byte, size_t size_bytes) = 0;
  virtual absl::Status AddLibraryCall(LibraryCall call) = 0;

  // Enqueues all work that was added and is held back.
  virtual absl::Status Flush() = 0;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_STREAM_H_
