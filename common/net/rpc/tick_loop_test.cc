#include "common/net/rpc/tick_loop.h"

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kTestTimeout = absl::Seconds(60);

class TickLoopTest : public testing::Test {
 protected:
  // Blocks until the loop has run `count` turns, and returns the last turn.
  TickLoop::Turn AwaitTurn(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto is_there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return turns_.size() >= count;
    };
    EXPECT_TRUE(
        mutex_.AwaitWithTimeout(absl::Condition(&is_there), kTestTimeout));
    EXPECT_EQ(turns_.size(), count);
    return turns_.empty() ? TickLoop::Turn() : turns_.back();
  }

  absl::Time Record(const TickLoop::Turn& turn) {
    absl::MutexLock lock(&mutex_);
    turns_.push_back(turn);
    return next_turn_;
  }

  SimulatedClock clock_;
  absl::Mutex mutex_;
  std::vector<TickLoop::Turn> turns_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_turn_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  TickLoop loop_{absl::Seconds(1),
                 [this](const TickLoop::Turn& turn) { return Record(turn); },
                 &clock_};
};

TEST_F(TickLoopTest, TakesATurnAtOnceAtEveryTickAndWhenWoken) {
  loop_.Start();
  EXPECT_FALSE(AwaitTurn(1).is_tick);
  clock_.Advance(absl::Milliseconds(500));
  loop_.Wake();
  EXPECT_FALSE(AwaitTurn(2).is_tick);
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_TRUE(AwaitTurn(3).is_tick);
  // Missed ticks are not repeated.
  clock_.Advance(absl::Seconds(10));
  EXPECT_TRUE(AwaitTurn(4).is_tick);
  loop_.Wake();
  EXPECT_FALSE(AwaitTurn(5).is_tick);
}

TEST_F(TickLoopTest, TakesATurnWhenTheWorkAskedForIt) {
  {
    absl::MutexLock lock(&mutex_);
    next_turn_ = clock_.Now() + absl::Milliseconds(300);
  }
  loop_.Start();
  AwaitTurn(1);
  clock_.Advance(absl::Milliseconds(299));
  AwaitTurn(1);
  {
    absl::MutexLock lock(&mutex_);
    next_turn_ = absl::InfiniteFuture();
  }
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(AwaitTurn(2).now, absl::UnixEpoch() + absl::Milliseconds(300));
}

TEST_F(TickLoopTest, TakesNoTurnAfterStop) {
  loop_.Start();
  AwaitTurn(1);
  loop_.Stop();
  loop_.Wake();
  clock_.Advance(absl::Seconds(10));
  AwaitTurn(1);
}

}  // namespace
}  // namespace muster
