#include "common/learn/strategy/input/prefetched_steps.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/sources.h"
#include "common/dataset/testing/test_elements.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/input/testing/test_groups.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAreArray;

using Policy = AutoShardPolicy;

TEST(PrefetchedSteps, PrefetchingChangesNothing) {
  const std::vector<std::string> paths = WriteFiles({9, 4, 6});
  for (const int prefetch : {0, 1, 2, 7}) {
    const auto workers = Distribute(
        CsvFiles(paths).Batch(5), 3, 2,
        {.auto_shard_policy = Policy::kFile, .prefetch_step_count = prefetch});
    EXPECT_THAT(RunGroup(workers).sorted_rows(), ElementsAreArray(CountTo(19)));
  }
}

TEST(PrefetchedSteps, PrefetchingStaysWithinItsBuffer) {
  constexpr int64_t kBuffer = 2;
  constexpr int64_t kSteps = 300;
  struct Progress {
    std::atomic<int64_t> taken = 0;  // Counted before Next() is called.
    std::vector<absl::Notification> drawn{kSteps};
  };
  auto progress = std::make_shared<Progress>();
  const Dataset dataset = Dataset::Range(kSteps).MapElements(
      [progress](Element element) -> absl::StatusOr<Element> {
        const int64_t number = element[0].scalar<int64_t>();
        EXPECT_LT(number, progress->taken + kBuffer);
        progress->drawn[number].Notify();
        return element;
      },
      {{DType::kInt64, Shape()}});
  ASSERT_OK_AND_ASSIGN(
      const auto distributed,
      DistributeDataset(dataset.Batch(1), {.replicas_per_worker = 2},
                        {.prefetch_step_count = kBuffer}));
  ASSERT_OK_AND_ASSIGN(const auto iterator, distributed.MakeIterator());
  std::vector<ReplicaBatch> batches;
  for (int64_t step = 0; step + kBuffer <= kSteps; ++step) {
    // The buffer fills up without any request.
    EXPECT_TRUE(
        progress->drawn[step + kBuffer - 1].WaitForNotificationWithTimeout(
            kTestWaitMax));
    ++progress->taken;
    ASSERT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
  }
}

TEST(PrefetchedSteps, AnIteratorMayBeDestroyedBeforeItsEnd) {
  for (int taken = 0; taken < 4; ++taken) {
    const auto workers = Distribute(Rows(40).Batch(2).Repeat(), 1, 2,
                                    {.prefetch_step_count = 2});
    ASSERT_OK_AND_ASSIGN(const auto iterator, workers[0].MakeIterator());
    std::vector<ReplicaBatch> batches;
    for (int i = 0; i < taken; ++i) {
      ASSERT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
    }
  }
}

TEST(PrefetchedSteps, ASlowInputIsReportedUntilItReturns) {
  auto release = std::make_shared<absl::Notification>();
  const Dataset slow = Dataset::Range(1).MapElements(
      [release](Element element) -> absl::StatusOr<Element> {
        EXPECT_TRUE(release->WaitForNotificationWithTimeout(kTestWaitMax));
        return element;
      },
      {{DType::kInt64, Shape()}});
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      DistributeDataset(slow.Batch(1), {}, {.prefetch_step_count = 0}));
  ASSERT_OK_AND_ASSIGN(auto steps, dataset.MakeIterator());
  std::vector<absl::Duration> told;
  const auto iterator = PrefetchSteps(
      std::move(steps),
      {.step_count = 1,
       .slow_input_warning = absl::Milliseconds(1),
       .on_slow_input = [&](absl::Duration waited, int64_t step_count) {
         EXPECT_EQ(step_count, 0);
         told.push_back(waited);
         if (told.size() == 2) release->Notify();
       }});
  std::vector<ReplicaBatch> batches;
  EXPECT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
  ASSERT_GE(told.size(), 2);
  EXPECT_EQ(told[0], absl::Milliseconds(1));
  EXPECT_EQ(told[1], absl::Milliseconds(2));
}

}  // namespace
}  // namespace muster
