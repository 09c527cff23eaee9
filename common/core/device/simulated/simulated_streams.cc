#include "common/core/device/simulated/simulated_streams.h"

#include <algorithm>
#include <utility>

#include "common/core/base/check.h"
#include "common/core/system/clock.h"

namespace muster::simulated {

using driver::Result;

SimulatedStreams::SimulatedStreams(SimulatedMemory* memory, int device_count,
                                   Order order, uint64_t seed)
    : memory_(*memory),
      order_(order),
      random_state_(seed),
      errors_(device_count, driver::kSuccess) {}

SimulatedStreams::~SimulatedStreams() {
  std::vector<std::thread> threads;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& stream : streams_) {
      stream->mutex->AssertHeld();
      stream->is_ending = true;
      if (stream->thread.joinable()) {
        threads.push_back(std::move(stream->thread));
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
}

StreamState* SimulatedStreams::AddStream(int device) {
  const absl::MutexLock lock(&mutex_);
  streams_.push_back(std::make_unique<StreamState>(&mutex_, device));
  StreamState* const stream = streams_.back().get();
  stream->mutex->AssertHeld();
  if (order_ == Order::kThreads) {
    stream->thread = std::thread([this, stream] { RunThread(stream); });
  }
  return stream;
}

Result SimulatedStreams::RemoveStream(StreamState* stream) {
  if (const Result result = Drain(stream); result == driver::kInvalidHandle) {
    return result;
  }
  std::unique_ptr<StreamState> removed;
  std::thread thread;
  {
    const absl::MutexLock lock(&mutex_);
    stream->mutex->AssertHeld();
    const auto found =
        std::find_if(streams_.begin(), streams_.end(),
                     [&](const auto& s) { return s.get() == stream; });
    if (found == streams_.end()) return driver::kInvalidHandle;
    stream->is_ending = true;
    thread = std::move(stream->thread);
    removed = std::move(*found);
    streams_.erase(found);
  }
  if (thread.joinable()) thread.join();
  return driver::kSuccess;
}

bool SimulatedStreams::IsStream(const StreamState* stream) const {
  const absl::MutexLock lock(&mutex_);
  return std::any_of(streams_.begin(), streams_.end(),
                     [&](const auto& s) { return s.get() == stream; });
}

std::shared_ptr<EventState> SimulatedStreams::AddEvent(bool is_timed) {
  return std::make_shared<EventState>(&mutex_, is_timed);
}

void SimulatedStreams::Enqueue(StreamState* stream,
                               std::function<Result()> work) {
  const absl::MutexLock lock(&mutex_);
  stream->mutex->AssertHeld();
  stream->operations.push_back({.work = std::move(work)});
}

void SimulatedStreams::Record(StreamState* stream,
                              std::shared_ptr<EventState> event) {
  const absl::MutexLock lock(&mutex_);
  stream->mutex->AssertHeld();
  event->mutex->AssertHeld();
  event->was_queried = false;
  const uint64_t count = ++event->recorded_count;
  stream->operations.push_back({.record = std::move(event), .count = count});
}

void SimulatedStreams::Wait(StreamState* stream,
                            std::shared_ptr<EventState> event) {
  const absl::MutexLock lock(&mutex_);
  stream->mutex->AssertHeld();
  event->mutex->AssertHeld();
  const uint64_t count = event->recorded_count;
  stream->operations.push_back({.wait = std::move(event), .count = count});
}

Result SimulatedStreams::Drain(StreamState* stream) {
  if (!IsStream(stream)) return driver::kInvalidHandle;
  RunUntil([&] {
    mutex_.AssertReaderHeld();
    return IsEmpty(*stream);
  });
  return error(stream->device);
}

Result SimulatedStreams::Query(EventState* event) {
  const auto is_reached = [event] {
    event->mutex->AssertReaderHeld();
    return event->reached_count >= event->recorded_count;
  };
  {
    const absl::MutexLock lock(&mutex_);
    event->mutex->AssertHeld();
    if (is_reached()) return driver::kSuccess;
    const bool polls = std::exchange(event->was_queried, true);
    if (order_ != Order::kAtWait || !polls) return driver::kNotReady;
  }
  RunUntil(is_reached);
  return driver::kSuccess;
}

Result SimulatedStreams::error(int device) const {
  const absl::MutexLock lock(&mutex_);
  return errors_[device];
}

void SimulatedStreams::set_error(int device, Result error) {
  const absl::MutexLock lock(&mutex_);
  if (errors_[device] == driver::kSuccess) errors_[device] = error;
}

bool SimulatedStreams::IsReady(const StreamState& stream) const {
  stream.mutex->AssertReaderHeld();
  if (stream.operations.empty() || stream.is_running) return false;
  const StreamState::Operation& next = stream.operations.front();
  if (next.wait == nullptr) return true;
  next.wait->mutex->AssertReaderHeld();
  return next.wait->reached_count >= next.count;
}

bool SimulatedStreams::IsEmpty(const StreamState& stream) const {
  stream.mutex->AssertReaderHeld();
  return stream.operations.empty() && !stream.is_running;
}

SimulatedStreams::Running SimulatedStreams::Begin(StreamState* stream) {
  stream->mutex->AssertHeld();
  StreamState::Operation operation = std::move(stream->operations.front());
  stream->operations.pop_front();
  if (operation.record != nullptr) {
    EventState& event = *operation.record;
    event.mutex->AssertHeld();
    event.reached_count = std::max(event.reached_count, operation.count);
    event.reached_time = Clock::Real()->Now();
  }
  // The work of a device that has failed is dropped; its events are reached.
  if (operation.work == nullptr ||
      errors_[stream->device] != driver::kSuccess) {
    return {.stream = stream};
  }
  stream->is_running = true;
  return {.stream = stream, .work = std::move(operation.work)};
}

void SimulatedStreams::Finish(const Running& running) {
  if (running.work == nullptr) return;
  const Result result = running.work();
  const absl::MutexLock lock(&mutex_);
  StreamState* const stream = running.stream;
  stream->mutex->AssertHeld();
  stream->is_running = false;
  if (result != driver::kSuccess) errors_[stream->device] = result;
}

Result SimulatedStreams::ElapsedTime(const EventState& from,
                                     const EventState& to,
                                     float* milliseconds) const {
  const absl::MutexLock lock(&mutex_);
  for (const EventState* event : {&from, &to}) {
    event->mutex->AssertReaderHeld();
    if (!event->is_timed || event->recorded_count == 0) {
      return driver::kInvalidHandle;
    }
    if (event->reached_count < event->recorded_count) return driver::kNotReady;
  }
  from.mutex->AssertReaderHeld();
  to.mutex->AssertReaderHeld();
  *milliseconds = static_cast<float>(
      absl::ToDoubleMilliseconds(to.reached_time - from.reached_time));
  return driver::kSuccess;
}

SimulatedStreams::Running SimulatedStreams::BeginAny(
    absl::FunctionRef<bool()> is_done) {
  std::vector<StreamState*> ready;
  bool is_running = false;
  for (const auto& stream : streams_) {
    stream->mutex->AssertHeld();
    if (IsReady(*stream)) ready.push_back(stream.get());
    is_running = is_running || stream->is_running;
  }
  if (!ready.empty()) {
    random_state_ = random_state_ * 6364136223846793005u + 1442695040888963407u;
    return Begin(ready[(random_state_ >> 33) % ready.size()]);
  }
  // A stream waits only for events that were recorded earlier, so streams
  // cannot deadlock. Another thread is running the missing work.
  MUSTER_CHECK(is_running);
  const auto can_continue = [&] {
    mutex_.AssertReaderHeld();
    return is_done() || std::any_of(streams_.begin(), streams_.end(),
                                    [&](const auto& stream) {
                                      mutex_.AssertReaderHeld();
                                      return IsReady(*stream);
                                    });
  };
  mutex_.Await(absl::Condition(&can_continue));
  return {};
}

void SimulatedStreams::RunUntil(absl::FunctionRef<bool()> is_done) {
  if (order_ == Order::kThreads) {
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_done));
    return;
  }
  const SimulatedMemory::DeviceWork work(&memory_);
  while (true) {
    Running running;
    {
      const absl::MutexLock lock(&mutex_);
      if (is_done()) return;
      running = BeginAny(is_done);
    }
    Finish(running);
  }
}

void SimulatedStreams::RunThread(StreamState* stream) {
  const SimulatedMemory::DeviceWork work(&memory_);
  const auto has_news = [this, stream] {
    mutex_.AssertReaderHeld();
    stream->mutex->AssertReaderHeld();
    return IsReady(*stream) || stream->is_ending;
  };
  while (true) {
    Running running;
    {
      const absl::MutexLock lock(&mutex_);
      stream->mutex->AssertHeld();
      mutex_.Await(absl::Condition(&has_news));
      if (stream->is_ending) return;
      running = Begin(stream);
    }
    Finish(running);
  }
}

}  // namespace muster::simulated
