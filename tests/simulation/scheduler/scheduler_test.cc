#include "tests/simulation/scheduler/scheduler.h"

#include <poll.h>
#include <sys/mman.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/system/clock.h"
#include "coordinator/closure_queue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulation/scheduler/seed_runs.h"
#include "tests/simulation/scheduler/testing/seed_expectations.h"

namespace muster::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two threads count to 20 together, and lose an update if one thread runs
// between two critical sections of the other.
int CountWithLostUpdates(Scheduler&, RunReport* report) {
  absl::Mutex mutex;
  int count = 0;
  const auto add = [&] {
    for (int i = 0; i < 10; ++i) {
      int before;
      {
        absl::MutexLock lock(&mutex);
        before = count;
      }
      absl::MutexLock lock(&mutex);
      count = before + 1;
    }
  };
  std::thread first(add);
  std::thread second(add);
  first.join();
  second.join();
  report->value = count;
  return 0;
}

TEST(SchedulerTest, FindsALostUpdateWithSomeSeeds) {
  int found_count = 0;
  for (const SeedRun& run : RunAll({.seed_count = 100}, CountWithLostUpdates)) {
    EXPECT_TRUE(run.ok()) << run.Problem();
    EXPECT_LE(run.report.value, 20);
    if (run.report.value < 20) ++found_count;
  }
  EXPECT_GE(found_count, 50);
}

TEST(SchedulerTest, RunsEachThreadToItsWaitsIfItNeverSwitches) {
  for (const SeedRun& run :
       RunAll({.seed_count = 20, .scheduler = {.switch_one_in = 0}},
              CountWithLostUpdates)) {
    EXPECT_EQ(run.report.value, 20);
  }
}

// A queue with every means to wait that the scheduler replaces.
int PassNumbers(Scheduler&, RunReport* report) {
  absl::Mutex mutex;
  std::vector<int> queue;
  int sum = 0;
  std::mutex standard_mutex;
  std::condition_variable standard_condition;
  int done_count = 0;
  std::vector<std::thread> threads;
  for (int producer = 0; producer < 3; ++producer) {
    threads.emplace_back([&, producer] {
      for (int i = 0; i < 5; ++i) {
        absl::SleepFor(absl::Microseconds(10 * producer));
        absl::MutexLock lock(&mutex);
        const auto has_room = [&] { return queue.size() < 2; };
        mutex.Await(absl::Condition(&has_room));
        queue.push_back(producer * 5 + i);
      }
    });
  }
  for (int consumer = 0; consumer < 2; ++consumer) {
    threads.emplace_back([&] {
      const auto has_number = [&] { return !queue.empty(); };
      absl::ReleasableMutexLock lock(&mutex);
      while (Clock::Real()->AwaitWithDeadline(
          &mutex, absl::Condition(&has_number),
          Clock::Real()->Now() + absl::Seconds(30))) {
        sum += queue.back();
        queue.pop_back();
      }
      lock.Release();
      const std::lock_guard<std::mutex> standard_lock(standard_mutex);
      ++done_count;
      standard_condition.notify_one();
    });
  }
  {
    std::unique_lock<std::mutex> lock(standard_mutex);
    standard_condition.wait(lock, [&] { return done_count == 2; });
  }
  for (std::thread& thread : threads) thread.join();
  report->value = sum;
  return 0;
}

TEST(SchedulerTest, RepeatsTheChoicesOf1000Seeds) {
  std::set<uint64_t> hashes;
  for (const SeedRun& run :
       RunAll({.seed_count = 1000, .twice = true}, PassNumbers)) {
    ASSERT_TRUE(run.ok()) << "seed " << run.seed << ": " << run.Problem();
    EXPECT_EQ(run.report.value, 14 * 15 / 2);
    hashes.insert(run.report.choice_hash);
  }
  EXPECT_EQ(hashes.size(), 1000u);
}

TEST(SchedulerTest, RunsASeedAloneAsAmongOthers) {
  ExpectSameChoicesAlone(/*first_seed=*/0, /*seed_count=*/50, PassNumbers);
}

// Reports the sum of the addresses of an object on the stack, of one on the
// heap, of a large one and of a mapping.
int AddAddresses(Scheduler&, RunReport* report) {
  const int on_stack = 0;
  const auto on_heap = std::make_unique<int>(0);
  const auto large = std::make_unique<std::vector<int>>(10'000'000);
  void* const mapped = mmap(nullptr, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
                            /*fd=*/-1, /*offset=*/0);
  const auto address = [](const void* object) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(object));
  };
  report->value = address(&on_stack) + address(on_heap.get()) +
                  address(large->data()) + address(mapped);
  return 0;
}

TEST(SchedulerTest, GivesObjectsAddressesThatDoNotDependOnTheProcess) {
  const int64_t before = RunAll({}, AddAddresses)[0].report.value;
  std::vector<std::unique_ptr<std::string>> allocated;
  for (size_t size_bytes = 1; size_bytes < 1 << 20; size_bytes *= 2) {
    allocated.push_back(std::make_unique<std::string>(size_bytes, ' '));
  }
  EXPECT_EQ(RunAll({}, AddAddresses)[0].report.value, before);
}

TEST(SchedulerTest, NamesTheFirstChoiceThatDiffers) {
  // Counts the runs, of which the program must not depend.
  auto* const run_count =
      static_cast<int*>(mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto runs =
      RunAll({.twice = true}, [run_count](Scheduler&, RunReport*) -> int {
        absl::SleepFor(absl::Milliseconds(++*run_count));
        return 0;
      });
  EXPECT_THAT(runs[0].Problem(),
              AllOf(HasSubstr("choice "), HasSubstr(" differs: thread "),
                    HasSubstr("at 1.0"), HasSubstr("at 2.0")));
}

TEST(SchedulerTest, SleepsInVirtualTime) {
  ExpectSuccess(1, [](Scheduler& scheduler, RunReport*) -> int {
    const absl::Time start = absl::Now();
    absl::SleepFor(absl::Hours(1) / 2);
    std::this_thread::sleep_for(std::chrono::minutes(20));
    const absl::Duration passed = absl::Now() - start;
    if (passed < absl::Minutes(50) || passed > absl::Minutes(51)) return 1;
    return scheduler.Elapsed() > absl::Minutes(50) ? 0 : 2;
  });
}

TEST(SchedulerTest, EndsTimedWaitsAtTheirDeadlines) {
  ExpectSuccess(1, [](Scheduler&, RunReport*) -> int {
    Clock* const clock = Clock::Real();
    absl::Mutex mutex;
    absl::MutexLock lock(&mutex);
    bool never = false;
    const absl::Time start = clock->Now();
    if (mutex.AwaitWithTimeout(absl::Condition(&never), absl::Seconds(7))) {
      return 1;
    }
    const absl::Time middle = clock->Now();
    if (clock->AwaitWithDeadline(&mutex, absl::Condition(&never),
                                 middle + absl::Seconds(5))) {
      return 2;
    }
    const auto is_near = [](absl::Duration passed, absl::Duration expected) {
      return passed >= expected && passed < expected + absl::Milliseconds(10);
    };
    if (!is_near(middle - start, absl::Seconds(7))) return 3;
    return is_near(clock->Now() - middle, absl::Seconds(5)) ? 0 : 4;
  });
}

TEST(SchedulerTest, ReportsADeadlockWithWhatEachThreadWaitsFor) {
  const auto runs = RunAll({}, [](Scheduler& scheduler, RunReport*) -> int {
    absl::Mutex first;
    absl::Mutex second;
    absl::Notification has_first;
    absl::Notification has_second;
    const HostId host = scheduler.AddHost("worker 7");
    scheduler.StartThread(host, "opposite", [&] {
      absl::MutexLock second_lock(&second);
      has_second.Notify();
      has_first.WaitForNotification();
      absl::MutexLock first_lock(&first);
    });
    absl::MutexLock first_lock(&first);
    has_first.Notify();
    has_second.WaitForNotification();
    absl::MutexLock second_lock(&second);
    return 0;
  });
  EXPECT_EQ(runs[0].Problem(), "deadlock");
  EXPECT_THAT(
      OutputOf(0),
      AllOf(HasSubstr("deadlock: no thread can run"),
            HasSubstr("opposite of worker 7 waits for an absl::Mutex"),
            HasSubstr("holds or waits for 2 locks"), Not(HasSubstr("for -")),
            HasSubstr("waits for the end of a thread"),
            HasSubstr("ReportsADeadlockWithWhatEachThreadWaitsFor")));
}

TEST(SchedulerTest, EndsARunThatOnlyPolls) {
  SeedRunsOptions options;
  options.scheduler.choice_count_max = 10'000;
  const auto runs = RunAll(options, [](Scheduler&, RunReport*) -> int {
    while (true) std::this_thread::yield();
  });
  EXPECT_EQ(runs[0].Problem(), "did not end");
}

TEST(SchedulerTest, RefusesToWaitInTheKernel) {
  const auto runs = RunAll(
      {}, [](Scheduler&, RunReport*) -> int { return poll(nullptr, 0, 10); });
  EXPECT_EQ(runs[0].Problem(), "called the kernel");
  EXPECT_THAT(OutputOf(0), HasSubstr("simulated code called poll()"));
}

TEST(SchedulerTest, DrawsIdentitiesFromTheSeed) {
  const SeedProgram draw = [](Scheduler&, RunReport* report) -> int {
    report->value = static_cast<int64_t>(RandomIdentity());
    return 0;
  };
  const auto first = RunAll({.seed_count = 2}, draw);
  const auto second = RunAll({.seed_count = 2}, draw);
  EXPECT_EQ(first[0].report.value, second[0].report.value);
  EXPECT_NE(first[0].report.value, first[1].report.value);
}

// A host with a thread that counts, each millisecond.
struct CountingHost {
  explicit CountingHost(Scheduler& counted)
      : scheduler(counted), host(counted.AddHost("counter")) {
    scheduler.StartThread(host, "count", [this] {
      while (true) {
        absl::SleepFor(absl::Milliseconds(1));
        ++count;
      }
    });
  }
  ~CountingHost() { scheduler.Kill(host); }
  Scheduler& scheduler;
  HostId host;
  int count = 0;
};

TEST(SchedulerTest, AStoppedHostDoesNothingUntilItIsResumed) {
  ExpectSuccess(1, [](Scheduler& scheduler, RunReport*) -> int {
    CountingHost counter(scheduler);
    absl::SleepFor(absl::Milliseconds(100));
    scheduler.Stop(counter.host);
    const int before = counter.count;
    absl::SleepFor(absl::Seconds(10));
    if (before < 50 || counter.count != before) return 1;
    scheduler.Resume(counter.host);
    absl::SleepFor(absl::Milliseconds(100));
    return counter.count > before + 50 && counter.count < before + 110 ? 0 : 2;
  });
}

TEST(SchedulerTest, AStoppedHostDoesNotCountTimeOutsOfItsConditions) {
  ExpectSuccess(1, [](Scheduler& scheduler, RunReport*) -> int {
    int timeout_count = 0;
    const HostId host = scheduler.AddHost("waiter");
    absl::Mutex mutex;
    scheduler.StartThread(host, "wait", [&] {
      const bool never = false;
      absl::MutexLock lock(&mutex);
      while (true) {
        mutex.AwaitWithTimeout(absl::Condition(&never), absl::Seconds(1));
        ++timeout_count;
      }
    });
    absl::SleepFor(absl::Seconds(3.5));
    scheduler.Stop(host);
    absl::SleepFor(absl::Seconds(60));
    scheduler.Resume(host);
    absl::SleepFor(absl::Seconds(2.5));
    return timeout_count >= 5 && timeout_count <= 7 ? 0 : 1;
  });
}

TEST(SchedulerTest, AKilledHostDoesNotKeepOthersFromASharedLock) {
  ExpectSuccess(50, [](Scheduler& scheduler, RunReport*) -> int {
    absl::Mutex shared;
    const HostId host = scheduler.AddHost("victim");
    const auto use = [&] {
      for (int i = 0; i < 100; ++i) {
        absl::MutexLock lock(&shared);
        absl::SleepFor(absl::Microseconds(10));
      }
    };
    scheduler.StartThread(host, "first", use);
    scheduler.StartThread(host, "second", use);
    std::thread other(use);
    absl::SleepFor(absl::Microseconds(scheduler.Below(2000)));
    scheduler.Kill(host);
    other.join();
    return 0;
  });
}

TEST(SchedulerTest, AKilledHostReleasesItsLocksFirst) {
  ExpectSuccess(50, [](Scheduler& scheduler, RunReport*) -> int {
    absl::Mutex shared;
    absl::Notification has_lock;
    bool went_on = false;
    const HostId host = scheduler.AddHost("victim");
    scheduler.StartThread(host, "holder", [&] {
      {
        absl::MutexLock lock(&shared);
        has_lock.Notify();
        absl::SleepFor(absl::Seconds(1));
      }
      absl::SleepFor(absl::Seconds(1));
      went_on = true;
    });
    has_lock.WaitForNotification();
    scheduler.Kill(host);
    { absl::MutexLock lock(&shared); }
    absl::SleepFor(absl::Seconds(5));
    return went_on ? 1 : 0;
  });
}

// Two workers finish what a program adds to the queue of the coordinator.
int RunClosureQueue(Scheduler& scheduler, RunReport* report) {
  constexpr int kClosureCount = 20;
  absl::Mutex mutex;
  ClosureQueue queue({.worker_count = 2, .queued_closures_max = 4});
  const auto work = [&](int worker) {
    absl::MutexLock lock(&mutex);
    queue.WorkerReady(worker);
    std::vector<ClosureQueue::Taken> taken;
    while (queue.finished_count() < kClosureCount) {
      taken.clear();
      queue.Take(worker, 2, &taken);
      mutex.Unlock();
      absl::SleepFor(absl::Microseconds(scheduler.Below(100)));
      mutex.Lock();
      for (const auto& closure : taken) {
        if (!queue.Finish(worker, closure.id, {}).ok()) return;
      }
    }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  for (int i = 0; i < kClosureCount; ++i) {
    absl::MutexLock lock(&mutex);
    const auto has_room = [&] { return queue.HasRoom(); };
    if (!Clock::Real()->AwaitWithDeadline(
            &mutex, absl::Condition(&has_room),
            Clock::Real()->Now() + absl::Seconds(10))) {
      return 1;
    }
    queue.Add({});
  }
  first.join();
  second.join();
  report->value = queue.finished_count();
  return queue.idle() ? 0 : 2;
}

TEST(SchedulerTest, RunsTheClosureQueueOfTheCoordinator) {
  std::set<uint64_t> hashes;
  for (const SeedRun& run :
       RunAll({.seed_count = 100, .twice = true}, RunClosureQueue)) {
    ASSERT_TRUE(run.ok()) << run.Problem() << OutputOf(run.seed);
    EXPECT_EQ(run.report.value, 20);
    hashes.insert(run.report.choice_hash);
  }
  EXPECT_EQ(hashes.size(), 100u);
}

}  // namespace
}  // namespace muster::sim

int main(int argc, char** argv) {
  return muster::sim::RunSeedTests(argc, argv);
}
