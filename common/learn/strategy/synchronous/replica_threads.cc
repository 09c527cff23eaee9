#include "common/learn/strategy/synchronous/replica_threads.h"

#include <utility>

#include "common/core/system/available_cpus.h"

namespace muster {
namespace {

// About 20 us: longer than drawing the next batch takes, and short enough not
// to disturb other processes.
constexpr int kSpinCount = 400;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

template <typename Condition>
bool Spin(bool spins, Condition condition) {
  for (int i = 0; spins && i < kSpinCount; ++i) {
    if (condition()) return true;
    Pause();
  }
  return condition();
}

}  // namespace

ReplicaThreads::ReplicaThreads(int replica_count)
    : spins_(replica_count <= AvailableCpus()) {
  for (int replica = 1; replica < replica_count; ++replica) {
    threads_.emplace_back([this, replica] { RunLoop(replica); });
  }
}

ReplicaThreads::~ReplicaThreads() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status ReplicaThreads::Run(Work work, OnError on_error) {
  work_ = &work;
  on_error_ = &on_error;
  running_count_.store(static_cast<int>(threads_.size()),
                       std::memory_order_relaxed);
  {
    // Under the lock, so that a thread that is about to sleep sees the new
    // round.
    absl::MutexLock lock(&mutex_);
    status_ = absl::OkStatus();
    round_.fetch_add(1, std::memory_order_release);
  }
  RunOne(0);
  AwaitOthers();
  absl::MutexLock lock(&mutex_);
  return std::exchange(status_, absl::OkStatus());
}

void ReplicaThreads::RunOne(int replica) {
  absl::Status status = (*work_)(replica);
  if (status.ok()) return;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    status_ = status;
  }
  (*on_error_)(status);
}

bool ReplicaThreads::AwaitRound(uint64_t seen) {
  const auto is_started = [this, seen] {
    return round_.load(std::memory_order_acquire) != seen ||
           stopping_.load(std::memory_order_relaxed);
  };
  if (!Spin(spins_, is_started)) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_started));
  }
  return !stopping_.load(std::memory_order_relaxed);
}

void ReplicaThreads::RunLoop(int replica) {
  for (uint64_t round = 0; AwaitRound(round);) {
    ++round;
    RunOne(replica);
    if (running_count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      // Wakes Run() if it sleeps: unlocking evaluates its condition.
      absl::MutexLock lock(&mutex_);
    }
  }
}

void ReplicaThreads::AwaitOthers() {
  const auto are_done = [this] {
    return running_count_.load(std::memory_order_acquire) == 0;
  };
  if (Spin(spins_, are_done)) return;
  absl::MutexLock lock(&mutex_);
  // Waits without a deadline while the step runs; its collectives have
  // deadlines.
  mutex_.Await(absl::Condition(&are_done));
}

}  // namespace muster
