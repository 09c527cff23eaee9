#include "ps/client/shard_layout.h"

#include <algorithm>
#include <cstdint>

#include "gtest/gtest.h"

namespace muster {
namespace {

// Compares all layouts of up to 40 rows with TensorFlow's formulas.
TEST(ShardLayoutTest, EveryRowLiesWhereTensorFlowPutsIt) {
  for (int64_t row_count = 1; row_count <= 40; ++row_count) {
    for (int64_t shard_count = 1; shard_count <= row_count; ++shard_count) {
      const ShardLayout layout(row_count, shard_count);
      const int64_t base = row_count / shard_count;
      const int64_t extra = row_count % shard_count;
      int64_t next_row = 0;
      for (int64_t shard = 0; shard < shard_count; ++shard) {
        ASSERT_EQ(layout.RowBegin(shard), next_row);
        ASSERT_EQ(layout.RowCount(shard), base + (shard < extra ? 1 : 0));
        for (int64_t i = 0; i < layout.RowCount(shard); ++i, ++next_row) {
          ASSERT_EQ(layout.ShardOf(next_row), shard);
          const int64_t part =
              std::max(next_row / (base + 1), (next_row - extra) / base);
          ASSERT_EQ(part, shard);
          const int64_t local =
              part < extra ? next_row % (base + 1) : (next_row - extra) % base;
          ASSERT_EQ(next_row - layout.RowBegin(shard), local);
        }
      }
      ASSERT_EQ(next_row, row_count);
      ASSERT_EQ(layout.RowBegin(shard_count), row_count);
    }
  }
}

TEST(ShardLayoutTest, AVariableOfNoRowsIsOneEmptyShard) {
  const ShardLayout layout(0, 1);
  EXPECT_EQ(layout.RowCount(0), 0);
}

TEST(ShardLayoutTest, ShardsAreNamedByPartAndWholeVariablesKeepTheirName) {
  EXPECT_EQ(ShardName("dense/kernel", 1, 2), "dense/kernel/part_1");
  EXPECT_EQ(ShardName("dense/kernel", 0, 1), "dense/kernel");
}

}  // namespace
}  // namespace muster
