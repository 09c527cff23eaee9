#include "common/learn/strategy/input/rebatch.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> SizesOf(const std::vector<RowRange>& ranges) {
  std::vector<int64_t> sizes;
  for (const RowRange& range : ranges) sizes.push_back(range.size());
  return sizes;
}

int64_t Sum(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

TEST(Rebatch, BalancedSizesDifferByOneAtMost) {
  EXPECT_THAT(BalancedSizes(8, 2), ElementsAre(4, 4));
  EXPECT_THAT(BalancedSizes(5, 3), ElementsAre(2, 2, 1));
  EXPECT_THAT(BalancedSizes(2, 4), ElementsAre(1, 1, 0, 0));
  for (int64_t batch = 0; batch <= 40; ++batch) {
    for (int replicas = 1; replicas <= 13; ++replicas) {
      const std::vector<int64_t> sizes = BalancedSizes(batch, replicas);
      ASSERT_EQ(sizes.size(), replicas);
      EXPECT_EQ(Sum(sizes), batch);
      EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
      EXPECT_LE(sizes.front() - sizes.back(), 1);
    }
  }
}

TEST(Rebatch, LegacySizesAreFullPiecesARemainderAndNothing) {
  EXPECT_THAT(LegacySizes(4, 3), ElementsAre(2, 2, 0));
  EXPECT_THAT(LegacySizes(2, 3), ElementsAre(1, 1, 0));
  EXPECT_THAT(LegacySizes(10, 4), ElementsAre(3, 3, 3, 1));
  EXPECT_THAT(LegacySizes(9, 8), ElementsAre(2, 2, 2, 2, 1, 0, 0, 0));
  for (int64_t rows = 0; rows <= 40; ++rows) {
    for (int replicas = 1; replicas <= 13; ++replicas) {
      const std::vector<int64_t> sizes = LegacySizes(rows, replicas);
      ASSERT_EQ(sizes.size(), replicas);
      EXPECT_EQ(Sum(sizes), rows);
      const int64_t piece = (rows + replicas - 1) / replicas;
      int64_t left = rows;
      for (const int64_t size : sizes) {
        EXPECT_EQ(size, std::min(piece, left));
        left -= size;
      }
    }
  }
}

TEST(Rebatch, ABatchThatIsNotFullFillsBalancedSubBatchesInOrder) {
  EXPECT_THAT(SizesOf(DivideBatch(RebatchRule::kBalanced, 16, 5, 4)),
              ElementsAre(4, 1, 0, 0));
  EXPECT_THAT(SizesOf(DivideBatch(RebatchRule::kBalanced, 5, 4, 3)),
              ElementsAre(2, 2, 0));
  EXPECT_THAT(SizesOf(DivideBatch(RebatchRule::kLegacy, 16, 5, 4)),
              ElementsAre(2, 2, 1, 0));
  // It is larger than declared.
  EXPECT_THAT(SizesOf(DivideBatch(RebatchRule::kBalanced, 4, 9, 2)),
              ElementsAre(5, 4));
}

TEST(Rebatch, EveryRowOfABatchIsAssignedOnceInOrder) {
  for (const RebatchRule rule :
       {RebatchRule::kBalanced, RebatchRule::kLegacy}) {
    for (int64_t batch = 1; batch <= 24; ++batch) {
      for (int64_t rows = 0; rows <= batch + 3; ++rows) {
        for (int replicas = 1; replicas <= 13; ++replicas) {
          const auto ranges = DivideBatch(rule, batch, rows, replicas);
          ASSERT_EQ(ranges.size(), replicas);
          int64_t next = 0;
          for (const RowRange& range : ranges) {
            ASSERT_EQ(range.begin, next);
            ASSERT_GE(range.end, range.begin);
            next = range.end;
          }
          ASSERT_EQ(next, rows);
        }
      }
    }
  }
}

TEST(Rebatch, TheWorkersListsStartWhereTensorFlowsDo) {
  // 5 rows on 2 workers with 2 replicas each: sizes 2, 1, 1, 1. Worker 0
  // rotates through them from the first on, worker 1 from the third.
  EXPECT_THAT(SharesOfStep(5, 2, 0, 2, 0),
              ElementsAre(Share{2, 0}, Share{1, 2}));
  EXPECT_THAT(SharesOfStep(5, 2, 1, 2, 0),
              ElementsAre(Share{1, 3}, Share{1, 4}));
  EXPECT_THAT(SharesOfStep(5, 2, 0, 2, 1),
              ElementsAre(Share{1, 0}, Share{1, 1}));
  EXPECT_THAT(SharesOfStep(5, 2, 1, 2, 1),
              ElementsAre(Share{2, 2}, Share{1, 4}));
  EXPECT_EQ(SharesOfStep(5, 2, 1, 2, 7), SharesOfStep(5, 2, 1, 2, 1));
}

TEST(Rebatch, TheSharesOfAStepAreDisjointAndAWorkersBatchLastsAllWorkersSteps) {
  for (int workers = 1; workers <= 4; ++workers) {
    for (int replicas = 1; replicas <= 3; ++replicas) {
      for (int64_t batch = 1; batch <= 30; ++batch) {
        std::vector<int64_t> taken(workers);
        for (int64_t step = 0; step < workers; ++step) {
          int64_t next = 0;
          for (int worker = 0; worker < workers; ++worker) {
            for (const Share& share :
                 SharesOfStep(batch, workers, worker, replicas, step)) {
              ASSERT_EQ(share.offset, next);
              next += share.size;
              taken[worker] += share.size;
            }
          }
          ASSERT_EQ(next, batch);
        }
        for (const int64_t rows : taken) ASSERT_EQ(rows, batch);
      }
    }
  }
}

TEST(Rebatch, ReplicasAreSpreadEquallyOnWorkers) {
  EXPECT_THAT(ReplicasPerWorker(6, 3), IsOkAndHolds(2));
  EXPECT_THAT(ReplicasPerWorker(5, 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("5 replicas"), HasSubstr("2 workers"))));
  EXPECT_THAT(ReplicasPerWorker(0, 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReplicasPerWorker(2, 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
