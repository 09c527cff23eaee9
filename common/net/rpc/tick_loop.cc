#include "common/net/rpc/tick_loop.h"

#include <algorithm>

namespace muster {

void TickLoop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void TickLoop::Wake() {
  absl::MutexLock lock(&mutex_);
  wake_ = true;
}

void TickLoop::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void TickLoop::Run() {
  absl::Time next_tick = clock_->Now() + interval_;
  absl::Time next_turn = absl::InfinitePast();
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      clock_->AwaitWithDeadline(&mutex_,
                                absl::Condition(this, &TickLoop::IsWakeable),
                                std::min(next_tick, next_turn));
      if (is_stopping_) return;
      wake_ = false;
    }
    Turn turn = {.now = clock_->Now()};
    turn.is_tick = turn.now >= next_tick;
    if (turn.is_tick) next_tick = turn.now + interval_;
    next_turn = work_(turn);
  }
}

}  // namespace muster
