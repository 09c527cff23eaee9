#include "ps/client/segment_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/core/base/check.h"

namespace muster {
namespace {

// Granularity in which pages are allocated.
constexpr size_t kGrowthBytes = size_t{2} << 20;

// Returns the number of bytes that a buffer of this size occupies.
size_t TakenBytes(size_t size_bytes) {
  return SegmentPool::RoundedUp(std::max<size_t>(size_bytes, 1));
}

}  // namespace

SegmentPool::SegmentPool(
    std::shared_ptr<Buffer> memory,
    std::function<bool(size_t offset, size_t size_bytes)> allocate_pages)
    : memory_(std::move(memory)),
      take_pages_(std::move(allocate_pages)),
      state_(std::make_shared<State>(memory_->size_bytes())) {
  MUSTER_CHECK(memory_->size_bytes() > kHeaderBytes);
}

std::shared_ptr<Buffer> SegmentPool::Allocate(size_t size_bytes) {
  if (size_bytes > memory_->size_bytes()) return nullptr;
  const size_t taken_bytes = TakenBytes(size_bytes);
  const size_t offset = state_->TakeFirstGap(taken_bytes);
  if (offset == 0) return nullptr;
  if (!HasPages(offset + taken_bytes)) {
    state_->Release(offset, taken_bytes);
    return nullptr;
  }
  return Buffer::Wrap(memory_->data() + offset, size_bytes,
                      [memory = memory_, state = state_, offset, taken_bytes] {
                        state->Release(offset, taken_bytes);
                      });
}

bool SegmentPool::HasPages(size_t end_bytes) {
  absl::MutexLock lock(&pages_mutex_);
  if (end_bytes <= paged_bytes_) return true;
  const size_t target_bytes =
      std::min(memory_->size_bytes(), end_bytes + -end_bytes % kGrowthBytes);
  if (!take_pages_(paged_bytes_, target_bytes - paged_bytes_)) return false;
  paged_bytes_ = target_bytes;
  return true;
}

size_t SegmentPool::State::TakeFirstGap(size_t size_bytes) {
  absl::MutexLock lock(&mutex);
  // First fit at the lowest offset: low addresses are reused, and pages at high
  // offsets are allocated only if needed.
  const auto found = std::find_if(
      free.begin(), free.end(),
      [size_bytes](const auto& gap) { return gap.second >= size_bytes; });
  if (found == free.end()) return 0;
  const auto [offset, gap_bytes] = *found;
  free.erase(found);
  if (gap_bytes > size_bytes) {
    free.emplace(offset + size_bytes, gap_bytes - size_bytes);
  }
  used_bytes += size_bytes;
  return offset;
}

void SegmentPool::State::Release(size_t offset, size_t size_bytes) {
  absl::MutexLock lock(&mutex);
  if (abandoned.contains(offset)) return;
  used_bytes -= size_bytes;
  const auto next = free.upper_bound(offset);
  if (next != free.end() && offset + size_bytes == next->first) {
    size_bytes += next->second;
    free.erase(next);
  }
  const auto after = free.upper_bound(offset);
  if (after != free.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size_bytes;
      return;
    }
  }
  free.emplace(offset, size_bytes);
}

void SegmentPool::Abandon(const Buffer& buffer) {
  MUSTER_CHECK(Holds(buffer.data()));
  absl::MutexLock lock(&state_->mutex);
  const size_t size_bytes = TakenBytes(buffer.size_bytes());
  if (state_->abandoned.emplace(OffsetOf(buffer.data()), size_bytes).second) {
    state_->abandoned_bytes += size_bytes;
  }
}

size_t SegmentPool::used_bytes() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->used_bytes;
}

size_t SegmentPool::abandoned_bytes() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->abandoned_bytes;
}

}  // namespace muster
