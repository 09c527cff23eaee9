#ifndef COMMON_CORE_DEVICE_SIMULATED_SIMULATED_STREAMS_H_
#define COMMON_CORE_DEVICE_SIMULATED_SIMULATED_STREAMS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/simulated/simulated_memory.h"

namespace muster::simulated {

// When the work of streams runs.
enum class Order {
  // Work runs while the host waits for it, on the waiting thread. A seed
  // selects the stream that continues. Work is delayed as long as possible, and
  // every run is the same. So a result that is read too early is still NaN, and
  // a source that is overwritten too early is copied with its new content.
  kAtWait,
  // Work runs on one thread for each stream.
  kThreads,
};

// An event; SimulatedStreams::AddEvent() makes it.
struct EventState {
  EventState(absl::Mutex* mutex, bool is_timed)
      : mutex(mutex), is_timed(is_timed) {}

  absl::Mutex* const mutex;  // The mutex of SimulatedStreams.
  const bool is_timed;
  uint64_t recorded_count ABSL_GUARDED_BY(mutex) = 0;
  uint64_t reached_count ABSL_GUARDED_BY(mutex) = 0;
  bool was_queried ABSL_GUARDED_BY(mutex) = false;  // Since it was recorded.
  absl::Time reached_time ABSL_GUARDED_BY(mutex);
};

// A stream; SimulatedStreams::AddStream() makes it.
struct StreamState {
  // Work other than waiting and recording is a function.
  struct Operation {
    std::function<driver::Result()> work;  // Empty for the kinds below.
    std::shared_ptr<EventState> record;    // Sets the event.
    std::shared_ptr<EventState> wait;      // Waits until `count` is reached.
    uint64_t count = 0;
  };

  StreamState(absl::Mutex* mutex, int device) : mutex(mutex), device(device) {}

  absl::Mutex* const mutex;  // The mutex of SimulatedStreams.
  const int device;
  std::deque<Operation> operations ABSL_GUARDED_BY(mutex);
  bool is_running ABSL_GUARDED_BY(mutex) = false;
  bool is_ending ABSL_GUARDED_BY(mutex) = false;
  // For Order::kThreads. Joined by the thread that has set is_ending.
  std::thread thread ABSL_GUARDED_BY(mutex);
};

// The streams of a simulated machine, and the order in which their work runs.
// The results of functions are the driver's. Thread-safe.
class SimulatedStreams {
 public:
  // `memory` is borrowed.
  SimulatedStreams(SimulatedMemory* memory, int device_count, Order order,
                   uint64_t seed);
  ~SimulatedStreams();
  SimulatedStreams(const SimulatedStreams&) = delete;
  SimulatedStreams& operator=(const SimulatedStreams&) = delete;

  StreamState* AddStream(int device);
  // Runs the remaining work of the stream, as the driver does.
  driver::Result RemoveStream(StreamState* stream);
  bool IsStream(const StreamState* stream) const;
  std::shared_ptr<EventState> AddEvent(bool is_timed);

  // Work that fails makes every later call for its device fail.
  void Enqueue(StreamState* stream, std::function<driver::Result()> work);
  void Record(StreamState* stream, std::shared_ptr<EventState> event);
  void Wait(StreamState* stream, std::shared_ptr<EventState> event);

  // Blocks until the work of the stream is done.
  driver::Result Drain(StreamState* stream);
  // Returns kNotReady, or kSuccess if the event is reached. With
  // Order::kAtWait, the second query that finds the event not reached waits for
  // it, so that polling ends.
  driver::Result Query(EventState* event);
  // The time from one event to the other, in milliseconds of the host's clock.
  driver::Result ElapsedTime(const EventState& from, const EventState& to,
                             float* milliseconds) const;

  // The error that every call for a device returns, or kSuccess.
  driver::Result error(int device) const;
  void set_error(int device, driver::Result error);

 private:
  // An operation that has begun.
  struct Running {
    StreamState* stream = nullptr;
    std::function<driver::Result()> work;  // Empty if it is done.
  };

  bool IsReady(const StreamState& stream) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsEmpty(const StreamState& stream) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Begins the next operation of a stream that is ready.
  Running Begin(StreamState* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const Running& running) ABSL_LOCKS_EXCLUDED(mutex_);
  // Selects a stream that is ready and begins an operation. If none is, blocks
  // until one is or `is_done`, and returns no stream.
  Running BeginAny(absl::FunctionRef<bool()> is_done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Blocks until `is_done`, which is called with the mutex held. With
  // Order::kAtWait, runs work while it waits.
  void RunUntil(absl::FunctionRef<bool()> is_done) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunThread(StreamState* stream) ABSL_LOCKS_EXCLUDED(mutex_);

  SimulatedMemory& memory_;
  const Order order_;
  mutable absl::Mutex mutex_;
  uint64_t random_state_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<StreamState>> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<driver::Result> errors_ ABSL_GUARDED_BY(mutex_);  // By device.
};

}  // namespace muster::simulated

#endif  // COMMON_CORE_DEVICE_SIMULATED_SIMULATED_STREAMS_H_
