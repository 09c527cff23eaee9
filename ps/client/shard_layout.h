#ifndef PS_CLIENT_SHARD_LAYOUT_H_
#define PS_CLIENT_SHARD_LAYOUT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// Where the rows of a variable lie when it is split into shards, in
// TensorFlow's "div" layout: shards are runs of rows, and the first `row_count
// % shard_count` of them hold one row more than the rest.
//
// Pure arithmetic. Thread-safe: immutable.
class ShardLayout {
 public:
  // 1 <= shard_count, and shard_count <= row_count unless it is 1.
  ShardLayout(int64_t row_count, int64_t shard_count);

  int64_t row_count() const { return row_count_; }
  int64_t shard_count() const { return shard_count_; }

  // Shard `shard` holds rows [RowBegin(shard), RowBegin(shard + 1)).
  int64_t RowBegin(int64_t shard) const {
    return shard * base_ + (shard < extra_ ? shard : extra_);
  }
  int64_t RowCount(int64_t shard) const {
    return base_ + (shard < extra_ ? 1 : 0);
  }

  // The shard that holds `row`, which must exist.
  int64_t ShardOf(int64_t row) const {
    // Rows before `boundary` lie in the longer shards.
    const int64_t boundary = extra_ * (base_ + 1);
    return row < boundary ? row / (base_ + 1)
                          : extra_ + (row - boundary) / base_;
  }

 private:
  int64_t row_count_;
  int64_t shard_count_;
  int64_t base_;   // Rows in each of the shorter shards.
  int64_t extra_;  // How many shards hold one row more.
};

// "<name>/part_<i>"; a variable without shards keeps its name.
std::string ShardName(absl::string_view variable, int64_t shard,
                      int64_t shard_count);

}  // namespace muster

#endif  // PS_CLIENT_SHARD_LAYOUT_H_
