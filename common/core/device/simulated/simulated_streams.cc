#include "common/core/device/simulated/simulated_streams.h"

#include <algorithm>
#include <utility>

#include "common/core/base/check.h"
#include "common/core/base/clock.h"

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
  streams_.push_back(std::make_unique<StreamState>());
  StreamState* const stream = streams_.back().get();
  stream->device = device;
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
  {
    const absl::MutexLock lock(&mutex_);
    const auto found =
        std::find_if(streams_.begin(), streams_.end(),
                     [&](const auto& s) { return s.get() == stream; });
    if (found == streams_.end()) return driver::kInvalidHandle;
    stream->is_ending = true;
    removed = std::move(*found);
    streams_.erase(found);
  }
  if (removed->thread.joinable()) removed->thread.join();
  return driver::kSuccess;
}

bool SimulatedStreams::IsStream(const StreamState* stream) const {
  const absl::MutexLock lock(&mutex_);
  return std::any_of(streams_.begin(), streams_.end(),
                     [&](const auto& s) { return s.get() == stream; });
}

void SimulatedStreams::Enqueue(StreamState* stream,
                               std::function<Result()> work) {
  const absl::MutexLock lock(&mutex_);
  stream->operations.push_back({.work = std::move(work)});
}

void SimulatedStreams::Record(StreamState* stream,
                              std::shared_ptr<EventState> event) {
  const absl::MutexLock lock(&mutex_);
  event->was_queried = false;
  const uint64_t count = ++event->recorded_count;
  stream->operations.push_back({.record = std::move(event), .count = count});
}

void SimulatedStreams::Wait(StreamState* stream,
                            std::shared_ptr<EventState> event) {
  const absl::MutexLock lock(&mutex_);
  const uint64_t count = event->recorded_count;
  stream->operations.push_back({.wait = std::move(event), .count = count});
}

Result SimulatedStreams::Drain(StreamState* stream) {
  if (!IsStream(stream)) return driver::kInvalidHandle;
  const absl::MutexLock lock(&mutex_);
  RunUntil([&] { return IsEmpty(*stream); });
  return errors_[stream->device];
}

Result SimulatedStreams::Query(EventState* event) {
  const absl::MutexLock lock(&mutex_);
  const auto is_reached = [&] {
    return event->reached_count >= event->recorded_count;
  };
  if (is_reached()) return driver::kSuccess;
  if (order_ == Order::kAtWait && std::exchange(event->was_queried, true)) {
    RunUntil(is_reached);
    return driver::kSuccess;
  }
  return driver::kNotReady;
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
  if (stream.operations.empty() || stream.is_running) return false;
  const StreamState::Operation& next = stream.operations.front();
  return next.wait == nullptr || next.wait->reached_count >= next.count;
}

void SimulatedStreams::RunOne(StreamState* stream) {
  StreamState::Operation operation = std::move(stream->operations.front());
  stream->operations.pop_front();
  if (operation.record != nullptr) {
    operation.record->reached_count =
        std::max(operation.record->reached_count, operation.count);
    operation.record->reached_time = Clock::Real()->Now();
  }
  // The work of a device that has failed is dropped; its events are reached.
  if (operation.work == nullptr ||
      errors_[stream->device] != driver::kSuccess) {
    return;
  }
  stream->is_running = true;
  mutex_.Unlock();
  const Result result = operation.work();
  mutex_.Lock();
  stream->is_running = false;
  if (result != driver::kSuccess) errors_[stream->device] = result;
}

Result SimulatedStreams::ElapsedTime(const EventState& from,
                                     const EventState& to,
                                     float* milliseconds) const {
  const absl::MutexLock lock(&mutex_);
  for (const EventState* event : {&from, &to}) {
    if (!event->is_timed || event->recorded_count == 0) {
      return driver::kInvalidHandle;
    }
    if (event->reached_count < event->recorded_count) return driver::kNotReady;
  }
  *milliseconds = static_cast<float>(
      absl::ToDoubleMilliseconds(to.reached_time - from.reached_time));
  return driver::kSuccess;
}

void SimulatedStreams::RunUntil(absl::FunctionRef<bool()> is_done) {
  if (order_ == Order::kThreads) {
    mutex_.Await(absl::Condition(&is_done));
    return;
  }
  const SimulatedMemory::DeviceWork work(&memory_);
  while (!is_done()) {
    std::vector<StreamState*> ready;
    bool is_running = false;
    for (const auto& stream : streams_) {
      if (IsReady(*stream)) ready.push_back(stream.get());
      is_running = is_running || stream->is_running;
    }
    if (!ready.empty()) {
      random_state_ =
          random_state_ * 6364136223846793005u + 1442695040888963407u;
      RunOne(ready[(random_state_ >> 33) % ready.size()]);
      continue;
    }
    // Each wait is for an event that was recorded before: they cannot wait for
    // each other. Another thread runs what is missing.
    MUSTER_CHECK(is_running);
    const auto can_go_on = [&] {
      mutex_.AssertReaderHeld();
      return is_done() || std::any_of(streams_.begin(), streams_.end(),
                                      [&](const auto& stream) {
                                        mutex_.AssertReaderHeld();
                                        return IsReady(*stream);
                                      });
    };
    mutex_.Await(absl::Condition(&can_go_on));
  }
}

void SimulatedStreams::RunThread(StreamState* stream) {
  const SimulatedMemory::DeviceWork work(&memory_);
  const auto has_news = [this, stream] {
    mutex_.AssertReaderHeld();
    return IsReady(*stream) || stream->is_ending;
  };
  const absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(&has_news));
    if (stream->is_ending) return;
    RunOne(stream);
  }
}

}  // namespace muster::simulated
