#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/variables/initial_value.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Returns the product of vectors `i` and `j`: rows, or columns if there are
// fewer.
double Product(const std::vector<float>& values, int64_t rows, int64_t columns,
               int64_t i, int64_t j) {
  double product = 0;
  if (rows <= columns) {
    for (int64_t k = 0; k < columns; ++k) {
      product += double{values[i * columns + k]} * values[j * columns + k];
    }
  } else {
    for (int64_t k = 0; k < rows; ++k) {
      product += double{values[k * columns + i]} * values[k * columns + j];
    }
  }
  return product;
}

TEST(OrthogonalTest, RowsOrColumnsAreOrthogonalAndAsLongAsTheGain) {
  const std::vector<std::pair<int64_t, int64_t>> sizes = {
      {1, 1}, {5, 5}, {16, 64}, {64, 16}, {33, 9}};
  for (const auto& [rows, columns] : sizes) {
    ASSERT_OK_AND_ASSIGN(
        const std::vector<float> values,
        OrthogonalValues({rows, columns}, /*gain=*/2, /*key=*/7));
    const int64_t count = std::min(rows, columns);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        EXPECT_NEAR(Product(values, rows, columns, i, j), i == j ? 4 : 0, 1e-5)
            << rows << "x" << columns << ": " << i << ", " << j;
      }
    }
  }
}

TEST(OrthogonalTest, AxesBeforeTheLastAreRows) {
  ASSERT_OK_AND_ASSIGN(const auto deep, OrthogonalValues({2, 3, 4}, 1, 3));
  ASSERT_OK_AND_ASSIGN(const auto flat, OrthogonalValues({6, 4}, 1, 3));
  EXPECT_EQ(deep, flat);
}

TEST(OrthogonalTest, KeysDrawDifferentMatricesAndSigns) {
  int positive = 0;
  for (uint64_t key = 0; key < 200; ++key) {
    ASSERT_OK_AND_ASSIGN(const auto values, OrthogonalValues({3, 3}, 1, key));
    positive += values[0] > 0;
  }
  EXPECT_GT(positive, 60);
  EXPECT_LT(positive, 140);
}

TEST(OrthogonalTest, NothingIsOrthogonalToo) {
  ASSERT_OK_AND_ASSIGN(const auto none, OrthogonalValues({0, 4}, 1, 1));
  EXPECT_TRUE(none.empty());
}

TEST(OrthogonalTest, RefusesWhatIsNoMatrixOrTooLarge) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(OrthogonalValues({4}, 1, 1), refused);
  EXPECT_THAT(OrthogonalValues({1 << 14, 1 << 14}, 1, 1), refused);
  EXPECT_THAT(
      OrthogonalValues({2, 2}, std::numeric_limits<double>::infinity(), 1),
      refused);
}

}  // namespace
}  // namespace muster
