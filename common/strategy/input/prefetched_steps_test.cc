#include "common/strategy/input/prefetched_steps.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/status_matchers.h"
#include "common/dataset/dataset.h"
#include "common/dataset/sources.h"
#include "common/dataset/testing.h"
#include "common/strategy/input/distributed_dataset.h"
#include "common/strategy/input/replica_batch.h"
#include "common/strategy/input/testing.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
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
  // Each element that is drawn says so; the one after the buffer never is.
  constexpr int kBuffer = 2;
  auto drawn = std::make_shared<std::vector<absl::Notification>>(10);
  const Dataset dataset = Dataset::Range(10).MapElements(
      [drawn](Element element) -> absl::StatusOr<Element> {
        (*drawn)[element[0].scalar<int64_t>()].Notify();
        return element;
      },
      {{DType::kInt64, Shape()}});
  ASSERT_OK_AND_ASSIGN(
      const auto distributed,
      DistributeDataset(dataset.Batch(1), {.replicas_per_worker = 2},
                        {.prefetch_step_count = kBuffer}));
  {
    ASSERT_OK_AND_ASSIGN(const auto iterator, distributed.MakeIterator());
    (*drawn)[kBuffer - 1].WaitForNotification();
    std::vector<ReplicaBatch> batches;
    ASSERT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
    // Room for one more.
    (*drawn)[kBuffer].WaitForNotification();
  }
  // Gone, with its thread: nothing was drawn beyond.
  EXPECT_FALSE((*drawn)[kBuffer + 1].HasBeenNotified());
}

TEST(PrefetchedSteps, ASlowInputIsToldOfUntilItAnswers) {
  auto release = std::make_shared<absl::Notification>();
  const Dataset slow = Dataset::Range(1).MapElements(
      [release](Element element) -> absl::StatusOr<Element> {
        release->WaitForNotification();
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
