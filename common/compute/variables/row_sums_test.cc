#include "common/compute/variables/row_sums.h"

#include <map>
#include <vector>

#include "absl/types/span.h"
#include "common/core/base/random.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RowSums, RowsThatRepeatAddUp) {
  const Tensor indices = Tensor::FromValues<int32_t>({4}, {7, 2, 7, 7});
  const Tensor values =
      Tensor::FromValues<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  RowSums sums;
  sums.Compute(indices, values);
  EXPECT_THAT(sums.rows(), ElementsAre(7, 2));
  EXPECT_THAT(absl::MakeConstSpan(sums.values<float>(), 4),
              ElementsAre(13, 16, 3, 4));
}

TEST(RowSums, DistinctRowsAreNotCopied) {
  const Tensor indices =
      Tensor::FromValues<int64_t>({2}, {int64_t{1} << 40, 0});
  const Tensor values = Tensor::FromValues<double>({2, 1}, {1, 2});
  RowSums sums;
  sums.Compute(indices, values);
  EXPECT_EQ(sums.values<double>(), values.flat<double>().data());
  EXPECT_THAT(sums.rows(), ElementsAre(int64_t{1} << 40, 0));
}

TEST(RowSums, NothingSumsToNothing) {
  RowSums sums;
  sums.Compute(Tensor(DType::kInt64, {0}), Tensor(DType::kFloat32, {0, 5}));
  EXPECT_THAT(sums.rows(), IsEmpty());
}

TEST(RowSums, AgreesWithAMapForAnyIndices) {
  RandomStream random(5);
  RowSums sums;  // One object for all cases, as in a session.
  for (int round = 0; round < 50; ++round) {
    const int64_t count = static_cast<int64_t>(random.Below(200));
    const uint64_t bound = 1 + random.Below(300);
    Tensor indices(DType::kInt64, {count});
    Tensor values(DType::kFloat64, {count, 3});
    std::map<int64_t, std::vector<double>> expected;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = static_cast<int64_t>(random.Below(bound));
      indices.mutable_flat<int64_t>()[i] = index;
      std::vector<double>& row = expected[index];
      row.resize(3);
      for (int j = 0; j < 3; ++j) {
        const double value = static_cast<double>(random.Below(1000));
        values.mutable_flat<double>()[3 * i + j] = value;
        row[j] += value;
      }
    }
    sums.Compute(indices, values);
    ASSERT_EQ(sums.rows().size(), expected.size());
    for (size_t i = 0; i < sums.rows().size(); ++i) {
      EXPECT_THAT(absl::MakeConstSpan(sums.values<double>() + 3 * i, 3),
                  testing::ElementsAreArray(expected.at(sums.rows()[i])));
    }
  }
}

}  // namespace
}  // namespace muster
