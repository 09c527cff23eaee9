#include "common/compute/kernels/cpu/intra_op_threads.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;

TEST(RunPartsTest, RunsEveryPartOnceAndWaitsForAll) {
  for (int round = 0; round < 2000; ++round) {
    const int part_count = 1 + round % 5;
    // Not atomic, to test that writes of helpers are visible to the caller.
    std::vector<int> runs(part_count, 0);
    RunParts(part_count, [&](int part) {
      // Varies the durations, so that helpers finish in different orders.
      for (int i = 0; i < round % 7 * part * 50; ++i) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
      ++runs[part];
    });
    ASSERT_THAT(runs, Each(1)) << "round " << round;
  }
}

TEST(RunPartsTest, RunsTheFirstPartOnTheCallingThread) {
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 100; ++round) {
    RunParts(3, [&](int part) {
      if (part == 0) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
      }
    });
  }
}

// Helpers start late if all processors are busy.
TEST(RunPartsTest, CallerRunsPartsThatNoHelperHasStarted) {
  std::atomic<int> done = 0;
  std::atomic<bool> is_over = false;
  std::vector<std::thread> others;
  const unsigned processor_count =
      std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < 2 * processor_count; ++i) {
    others.emplace_back([&] {
      while (!is_over) {
      }
    });
  }
  std::atomic<int> by_caller = 0;
  const std::thread::id caller = std::this_thread::get_id();
  // Repeats until the caller has run a part, which takes a few rounds.
  for (int round = 0; by_caller == 0; ++round) {
    RunParts(4, [&](int part) {
      ++done;
      if (part > 0 && std::this_thread::get_id() == caller) ++by_caller;
    });
    EXPECT_EQ(done, 4 * (round + 1));
  }
  is_over = true;
  for (std::thread& other : others) other.join();
}

TEST(RunPartsTest, ThreadsHaveSeparateHelpers) {
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4, 0);
  for (size_t caller = 0; caller < sums.size(); ++caller) {
    callers.emplace_back([&sums, caller] {
      for (int round = 0; round < 300; ++round) {
        std::vector<int64_t> parts(3, 0);
        RunParts(3, [&](int part) { parts[part] = part + round; });
        sums[caller] += parts[0] + parts[1] + parts[2];
        // Occasionally delays, so that helpers go to sleep.
        for (int i = 0; round % 100 == 99 && i < 50; ++i) {
          std::thread([] {}).join();
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(sums, Each(300 * 3 + 3 * 299 * 300 / 2));
}

TEST(RunPartsTest, CallsCanBeNested) {
  std::atomic<int> count = 0;
  RunParts(2, [&](int) { RunParts(2, [&](int) { ++count; }); });
  EXPECT_EQ(count, 4);
}

TEST(IntraOpThreadCountTest, IsWithinTheLimitOfTheProcess) {
  SetIntraOpThreadCount(3);
  EXPECT_EQ(IntraOpThreadCount(0), 1);
  EXPECT_EQ(IntraOpThreadCount(2), 2);
  EXPECT_EQ(IntraOpThreadCount(8), 3);
}

}  // namespace
}  // namespace muster
