#include "common/core/system/deadline_waker.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "gtest/gtest.h"

namespace {

std::atomic<bool> wall_clock_is_set_back{false};
std::atomic<int> realtime_wait_count{0};

}  // namespace

// Replaces the function of the C library through which Abseil makes its futex
// calls. Adds an hour to the deadline of each wait on the realtime clock, as if
// that clock had been set back by an hour.
extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  timespec later;
  if (number == SYS_futex && wall_clock_is_set_back && arguments[3] != 0 &&
      (arguments[1] & FUTEX_CLOCK_REALTIME) != 0) {
    ++realtime_wait_count;
    later = *reinterpret_cast<const timespec*>(arguments[3]);
    later.tv_sec += 3600;
    arguments[3] = reinterpret_cast<long>(&later);
  }
  using Function = long (*)(long, ...);
  static const auto next =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "syscall"));
  return next(number, arguments[0], arguments[1], arguments[2], arguments[3],
              arguments[4], arguments[5]);
}

namespace muster {
namespace {

absl::Time In(absl::Duration duration) {
  return Clock::Real()->Now() + duration;
}

TEST(DeadlineWakerTest, AWaitIsNotProlongedByAWallClockThatIsSetBack) {
  wall_clock_is_set_back = true;
  absl::Mutex mutex;
  bool never = false;
  {
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(Clock::Real()->AwaitWithDeadline(
        &mutex, absl::Condition(&never), In(absl::Milliseconds(20))));
  }
  wall_clock_is_set_back = false;
  EXPECT_EQ(realtime_wait_count, 0);
}

TEST(DeadlineWakerTest, TheTestSeesWaitsOfTheRealtimeClock) {
  wall_clock_is_set_back = true;
  absl::Mutex mutex;
  bool is_over = false;
  std::thread waits([&] {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&is_over),
                                       absl::Milliseconds(1)));
  });
  EXPECT_TRUE(AwaitTrue([] { return realtime_wait_count > 0; }));
  {
    absl::MutexLock lock(&mutex);
    is_over = true;
  }
  waits.join();
  wall_clock_is_set_back = false;
}

TEST(DeadlineWakerTest, AnEarlierDeadlineEndsItsWaitFirst) {
  absl::Mutex mutex;
  bool is_over = false;
  std::thread late([&] {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(Clock::Real()->AwaitWithDeadline(
        &mutex, absl::Condition(&is_over), In(absl::Hours(1))));
  });
  {
    absl::MutexLock lock(&mutex);
    bool never = false;
    EXPECT_FALSE(Clock::Real()->AwaitWithDeadline(
        &mutex, absl::Condition(&never), In(absl::Milliseconds(5))));
    is_over = true;
  }
  late.join();
}

TEST(DeadlineWakerTest, AMutexThatIsHeldAtTheDeadlineIsTriedAgain) {
  absl::Mutex mutex;
  bool is_waiting = false;
  bool never = false;
  std::thread waits([&] {
    absl::MutexLock lock(&mutex);
    is_waiting = true;
    EXPECT_FALSE(Clock::Real()->AwaitWithDeadline(
        &mutex, absl::Condition(&never), In(absl::Milliseconds(2))));
  });
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&is_waiting));
    const absl::Time end = In(absl::Milliseconds(10));
    EXPECT_TRUE(AwaitTrue([&] { return Clock::Real()->Now() >= end; }));
  }
  waits.join();
}

TEST(DeadlineWakerTest, ManyThreadsAtOneMutexAreAllWoken) {
  absl::Mutex mutex;
  int value = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 500; ++round) {
        absl::MutexLock lock(&mutex);
        const auto is_even = [&] { return value % 2 == 0; };
        Clock::Real()->AwaitWithDeadline(&mutex, absl::Condition(&is_even),
                                         In(absl::Microseconds(10 * (i + 1))));
        ++value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(value, 8 * 500);
}

TEST(DeadlineWakerTest, DeadlinesAreKeptInAForkedChild) {
  absl::Mutex mutex;
  bool never = false;
  const auto wait = [&] {
    absl::MutexLock lock(&mutex);
    return Clock::Real()->AwaitWithDeadline(&mutex, absl::Condition(&never),
                                            In(absl::Milliseconds(1)));
  };
  EXPECT_FALSE(wait());
  const pid_t pid = fork();
  if (pid == 0) _exit(wait() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace muster
