#include "common/core/base/arena_planner.h"

#include <algorithm>
#include <iterator>

namespace muster {

ArenaPlanner::Block ArenaPlanner::Allocate(size_t size_bytes) {
  const size_t unit_count =
      (size_bytes + alignment_bytes_ - 1) / alignment_bytes_;
  const size_t rounded = std::max<size_t>(1, unit_count) * alignment_bytes_;
  const auto best = holes_by_size_.lower_bound({rounded, 0});
  if (best != holes_by_size_.end()) {
    const auto [hole_bytes, offset] = *best;
    RemoveHole(offset);
    if (hole_bytes > rounded) AddHole(offset + rounded, hole_bytes - rounded);
    return {offset, rounded};
  }
  // If there is a hole at the end, the block begins there and extends it.
  size_t offset = size_bytes_;
  if (!holes_.empty()) {
    const auto [last_offset, last_bytes] = *holes_.rbegin();
    if (last_offset + last_bytes == size_bytes_) {
      offset = last_offset;
      RemoveHole(last_offset);
    }
  }
  size_bytes_ = offset + rounded;
  return {offset, rounded};
}

void ArenaPlanner::Free(const Block& block) {
  size_t begin = block.offset_bytes;
  size_t end = begin + block.size_bytes;
  const auto next = holes_.lower_bound(begin);
  if (next != holes_.begin()) {
    const auto [offset, size] = *std::prev(next);
    if (offset + size == begin) begin = offset;
  }
  if (next != holes_.end() && next->first == end) {
    end += next->second;
    RemoveHole(next->first);
  }
  if (begin != block.offset_bytes) RemoveHole(begin);
  AddHole(begin, end - begin);
}

void ArenaPlanner::AddHole(size_t offset_bytes, size_t size_bytes) {
  holes_[offset_bytes] = size_bytes;
  holes_by_size_.emplace(size_bytes, offset_bytes);
}

void ArenaPlanner::RemoveHole(size_t offset_bytes) {
  const auto hole = holes_.find(offset_bytes);
  holes_by_size_.erase({hole->second, offset_bytes});
  holes_.erase(hole);
}

}  // namespace muster
