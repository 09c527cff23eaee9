#include "ps/client/shard_layout.h"

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"

namespace muster {

ShardLayout::ShardLayout(int64_t row_count, int64_t shard_count)
    : row_count_(row_count),
      shard_count_(shard_count),
      base_(row_count / shard_count),
      extra_(row_count % shard_count) {
  MUSTER_CHECK(shard_count >= 1);
  MUSTER_CHECK(shard_count == 1 || shard_count <= row_count);
}

std::string ShardName(absl::string_view variable, int64_t shard,
                      int64_t shard_count) {
  return shard_count == 1 ? std::string(variable)
                          : absl::StrCat(variable, "/part_", shard);
}

}  // namespace muster
