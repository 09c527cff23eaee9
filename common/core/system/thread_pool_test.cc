#include "common/core/system/thread_pool.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ThreadPoolTest, DestructorRunsScheduledTasks) {
  std::atomic<int> runs = 0;
  {
    ThreadPool pool("test", 2);
    for (int i = 0; i < 100; ++i) pool.Schedule([&runs] { ++runs; });
  }
  EXPECT_EQ(runs, 100);
}

TEST(ThreadPoolTest, ParallelForVisitsEveryIndexOnce) {
  ThreadPool pool("test", 3);
  for (const int64_t count : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> visits(count);
    pool.ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++visits[i];
    });
    for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
  }
}

}  // namespace
}  // namespace muster
