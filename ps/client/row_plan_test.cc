#include "ps/client/row_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RowPlanTest, RowsInOrderAreNotMoved) {
  RowPlan plan;
  ASSERT_OK(plan.Compute("x", Tensor::FromValues<int64_t>({3}, {1, 4, 9}), 10));
  EXPECT_TRUE(plan.is_in_order());
  EXPECT_THAT(plan.rows(), ElementsAre(1, 4, 9));
}

TEST(RowPlanTest, RowsOutsideTheVariableAreNamed) {
  RowPlan plan;
  EXPECT_THAT(plan.Compute("x", Tensor::FromValues<int32_t>({2}, {3, 10}), 10),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("row 10 of variable \"x\" does not exist; it "
                                 "has 10 rows")));
  EXPECT_THAT(plan.Compute("x", Tensor::FromValues<int32_t>({1}, {-1}), 10),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(plan.Compute("x", Tensor::Scalar(1.0f), 10),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("named by int32 or int64")));
}

// Compares with a map, for small and huge tables.
TEST(RowPlanTest, SumsAndSpreadsLikeAMap) {
  RandomStream random(11);
  RowPlan plan;
  for (int64_t row_count : {1, 5, 3000, 1 << 30}) {
    for (int64_t count : {0, 1, 2, 100, 999}) {
      Tensor indices(DType::kInt64, Shape({count}));
      Tensor values(DType::kFloat32, Shape({count, 2}));
      std::map<int64_t, float> sums;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = static_cast<int64_t>(random.Below(row_count));
        indices.mutable_flat<int64_t>()[i] = row;
        for (int64_t k = 0; k < 2; ++k) {
          values.mutable_flat<float>()[2 * i + k] = static_cast<float>(i + k);
        }
        sums[row] += static_cast<float>(i);
      }
      ASSERT_OK(plan.Compute("x", indices, row_count));
      ASSERT_EQ(plan.rows().size(), sums.size());
      ASSERT_TRUE(std::is_sorted(plan.rows().begin(), plan.rows().end()));
      Tensor summed(DType::kFloat32,
                    Shape({static_cast<int64_t>(plan.rows().size()), 2}));
      plan.Sum(values, 2, &summed);
      for (size_t i = 0; i < plan.rows().size(); ++i) {
        ASSERT_EQ(summed.flat<float>()[2 * i], sums.at(plan.rows()[i]));
      }
      std::vector<int64_t> spread(count);
      plan.Spread(reinterpret_cast<const uint8_t*>(plan.rows().data()),
                  sizeof(int64_t), reinterpret_cast<uint8_t*>(spread.data()));
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(spread[i], indices.flat<int64_t>()[i]);
      }
    }
  }
}

TEST(RowPlanTest, EqualRowsKeepTheirOrder) {
  RowPlan plan;
  ASSERT_OK(
      plan.Compute("x", Tensor::FromValues<int64_t>({4}, {7, 2, 7, 2}), 10));
  EXPECT_THAT(plan.order(), ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(plan.row_of(), ElementsAre(0, 0, 1, 1));
  Tensor permuted(DType::kInt64, Shape({4}));
  plan.Permute(Tensor::FromValues<int64_t>({4}, {10, 11, 12, 13}),
               sizeof(int64_t), &permuted);
  EXPECT_THAT(permuted.flat<int64_t>(), ElementsAre(11, 13, 10, 12));
}

}  // namespace
}  // namespace muster
