#include "common/dataset/autotune.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/available_cpus.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(Autotune, MapUsesAsManyThreadsAsThereAreCpus) {
  absl::Mutex mutex;
  int running = 0;
  // Each element waits for those of all threads.
  const int expected = std::min(AvailableCpus(), 64);
  const auto meet = [&](Element element) -> absl::StatusOr<Element> {
    absl::MutexLock lock(&mutex);
    ++running;
    const auto all_run = [&] { return running >= expected; };
    const bool met =
        mutex.AwaitWithTimeout(absl::Condition(&all_run), absl::Seconds(30));
    if (!met) return absl::DeadlineExceededError("too few threads");
    return element;
  };
  const Dataset dataset = Dataset::Range(2 * expected)
                              .MapElements(meet, {{DType::kInt64, Shape()}},
                                           {.thread_count = kAutotune});
  EXPECT_EQ(Numbers(dataset), UpTo(2 * expected));
  EXPECT_THAT(
      Dataset::Range(1)
          .MapElements(meet, {{DType::kInt64, Shape()}}, {.thread_count = -2})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("thread_count is -2")));
}

TEST(Autotune, PrefetchDoesNotChangeTheElements) {
  EXPECT_EQ(Numbers(Stream(300).Prefetch(kAutotune)), UpTo(300));
  EXPECT_THAT(Dataset::Range(1).Prefetch(-2).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("buffer_size is -2")));
}

TEST(Autotune, PrefetchReadsFurtherAheadWhenTheConsumerHasToWait) {
  constexpr int64_t kSlowCount = 50;
  absl::Mutex mutex;
  bool is_waited_for = false;
  int64_t read_count = 0;
  // The first elements come after the consumer has begun to wait.
  const auto read = [&](Element element) -> absl::StatusOr<Element> {
    {
      absl::MutexLock lock(&mutex);
      if (read_count++ >= kSlowCount) return element;
      mutex.Await(absl::Condition(&is_waited_for));
      is_waited_for = false;
    }
    for (int i = 0; i < 100; ++i) sched_yield();
    return element;
  };
  const Dataset dataset = Dataset::Range(10 * kSlowCount)
                              .MapElements(read, {{DType::kInt64, Shape()}})
                              .Prefetch(kAutotune);
  ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.MakeIterator());
  Element element;
  for (int64_t i = 0; i < kSlowCount; ++i) {
    {
      absl::MutexLock lock(&mutex);
      is_waited_for = true;
    }
    ASSERT_THAT(iterator->Next(&element), IsOkAndHolds(true));
    EXPECT_EQ(element[0].scalar<int64_t>(), i);
  }
  // With a buffer of one element, it reads no more than one ahead.
  absl::MutexLock lock(&mutex);
  const auto reads_ahead = [&] { return read_count >= kSlowCount + 2; };
  EXPECT_TRUE(
      mutex.AwaitWithTimeout(absl::Condition(&reads_ahead), absl::Seconds(30)));
}

}  // namespace
}  // namespace muster
