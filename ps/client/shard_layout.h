#ifndef PS_CLIENT_SHARD_LAYOUT_H_
#define PS_CLIENT_SHARD_LAYOUT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// The rows of each shard of a variable, in TensorFlow's "div" layout: each
// shard is a contiguous range of rows, and the first `row_count % shard_count`
// shards have one row more than the others.
//
// Pure arithmetic. Thread-safe: immutable.
class ShardLayout {
 public:
  // Requires shard_count >= 1, and shard_count <= row_count unless it is 1.
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

  // Returns the shard that holds `row`, which must exist.
  int64_t ShardOf(int64_t row) const {
    // The longer shards hold the rows before `boundary`.
    const int64_t boundary = extra_ * (base_ + 1);
    return row < boundary ? row / (base_ + 1)
                          : extra_ + (row - boundary) / base_;
  }

 private:
  int64_t row_count_;
  int64_t shard_count_;
  int64_t base_;   // Number of rows in a shorter shard.
  int64_t extra_;  // Number of shards with one row more.
};

// Returns "<name>/part_<i>", or the name itself if there is only one shard.
std::string ShardName(absl::string_view variable, int64_t shard,
                      int64_t shard_count);

}  // namespace muster

#endif  // PS_CLIENT_SHARD_LAYOUT_H_
