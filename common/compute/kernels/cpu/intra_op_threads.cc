#include "common/compute/kernels/cpu/intra_op_threads.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

// Declared for libgomp, which Debian's oneDNN uses. clang's <omp.h> is for
// another OpenMP library.
extern "C" void omp_set_num_threads(int);

namespace muster {
namespace {

using SpinClock = std::chrono::steady_clock;

// How long a helper spins for the next kernel before it sleeps: longer than
// most pauses within a step, and a few times the cost of waking it.
constexpr auto kSpinTime = std::chrono::microseconds(200);
// Number of spins between reads of the clock.
constexpr int kSpinsPerClockRead = 64;

std::atomic<int>& ThreadCountMax() {
  static std::atomic<int> thread_count_max =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return thread_count_max;
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// A thread that runs one part at a time.
class Helper {
 public:
  using Body = absl::FunctionRef<void(int)>;

  // `running` counts the unfinished parts.
  Helper(int part, std::atomic<int>* running)
      : part_(part), running_(running), thread_([this] { Loop(); }) {}
  ~Helper() {
    Become(State::kEnding);
    thread_.join();
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Offers the part to the thread. `body` must outlive the part. Call only if
  // no part is offered or running.
  void Offer(const Body* body) {
    body_ = body;
    Become(State::kOffered);
  }

  // Claims the offered part; the claiming thread runs it. Returns false if the
  // other thread has claimed it.
  bool Take() {
    State offered = State::kOffered;
    return state_.compare_exchange_strong(offered, State::kNothing,
                                          std::memory_order_acq_rel);
  }

 private:
  enum class State : int { kNothing, kOffered, kAsleep, kEnding };

  void Become(State state) {
    if (state_.exchange(state, std::memory_order_acq_rel) == State::kAsleep) {
      state_.notify_one();
    }
  }

  void Loop() {
    pthread_setname_np(pthread_self(), "intra_op");
    UseOpenMpThreads(1);
    while (AwaitOffer()) {
      // A late helper may find its part already claimed, or may claim a part of
      // a later body.
      if (!Take()) continue;
      (*body_)(part_);
      running_->fetch_sub(1, std::memory_order_release);
    }
  }

  // Returns false if the helper must end.
  bool AwaitOffer() {
    SpinClock::time_point deadline = SpinClock::now() + kSpinTime;
    for (int spins = 1;; ++spins) {
      const State state = state_.load(std::memory_order_acquire);
      if (state == State::kOffered) return true;
      if (state == State::kEnding) return false;
      Pause();
      if (spins % kSpinsPerClockRead != 0 || SpinClock::now() < deadline) {
        continue;
      }
      State nothing = State::kNothing;
      if (state_.compare_exchange_strong(nothing, State::kAsleep,
                                         std::memory_order_acq_rel)) {
        state_.wait(State::kAsleep, std::memory_order_acquire);
      }
      deadline = SpinClock::now() + kSpinTime;
    }
  }

  const int part_;
  std::atomic<int>* const running_;
  std::atomic<State> state_ = State::kNothing;
  // Accessed only by the thread that claimed the part.
  const Body* body_ = nullptr;
  std::thread thread_;  // Declared last: it uses the other members.
};

// The helpers of one thread.
class Team {
 public:
  void Run(int part_count, Helper::Body body) {
    if (std::exchange(is_running_, true)) {
      // A nested call: the helpers are running the outer parts.
      for (int part = 0; part < part_count; ++part) body(part);
      return;
    }
    while (static_cast<int>(helpers_.size()) < part_count - 1) {
      helpers_.push_back(std::make_unique<Helper>(
          static_cast<int>(helpers_.size()) + 1, &running_));
    }
    running_.store(part_count - 1, std::memory_order_relaxed);
    for (int part = 1; part < part_count; ++part) {
      helpers_[part - 1]->Offer(&body);
    }
    body(0);
    for (int part = 1; part < part_count; ++part) {
      if (!helpers_[part - 1]->Take()) continue;
      body(part);
      running_.fetch_sub(1, std::memory_order_relaxed);
    }
    AwaitHelpers();
    is_running_ = false;
  }

 private:
  // Yields after kSpinTime, because a helper that has started may have been
  // preempted.
  void AwaitHelpers() {
    const SpinClock::time_point deadline = SpinClock::now() + kSpinTime;
    for (int spins = 1; running_.load(std::memory_order_acquire) > 0; ++spins) {
      Pause();
      if (spins % kSpinsPerClockRead == 0 && SpinClock::now() >= deadline) {
        std::this_thread::yield();
      }
    }
  }

  bool is_running_ = false;
  std::atomic<int> running_ = 0;
  std::vector<std::unique_ptr<Helper>> helpers_;  // Helper i - 1 runs part i.
};

}  // namespace

void SetIntraOpThreadCount(int thread_count_max) {
  ThreadCountMax() = std::max(1, thread_count_max);
}

int IntraOpThreadCount(int wanted) {
  return std::clamp(wanted, 1, ThreadCountMax().load());
}

void RunParts(int part_count, absl::FunctionRef<void(int part)> body) {
  if (part_count <= 1) {
    body(0);
    return;
  }
  thread_local Team team;
  team.Run(part_count, body);
}

void UseOpenMpThreads(int thread_count) {
  thread_local int in_use = 0;
  if (in_use == thread_count) return;
  omp_set_num_threads(thread_count);
  in_use = thread_count;
}

}  // namespace muster
