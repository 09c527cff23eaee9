#ifndef PS_CLIENT_SEGMENT_POOL_H_
#define PS_CLIENT_SEGMENT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/core/tensor/buffer.h"

namespace muster {

// Allocates the memory of a segment that this process shares with others.
//
// The others write and read a buffer only while this process holds it, with
// one exception: after an exchange whose end is unknown, a server may
// still be at work on it. Such a buffer is abandoned, and its memory stays out
// of use as long as the segment lasts.
//
// Thread-safe. Buffers may outlive the pool.
class SegmentPool {
 public:
  // Buffers begin at multiples of this.
  static constexpr size_t kAlignmentBytes = 64;
  // Returns the least multiple of it that is not below `size_bytes`.
  static constexpr size_t RoundedUp(size_t size_bytes) {
    return size_bytes + -size_bytes % kAlignmentBytes;
  }
  // The size of the header before the first buffer. No buffer has offset 0.
  static constexpr size_t kHeaderBytes = 4096;

  // `memory` is the segment from its beginning, at the border of a page, and
  // keeps it mapped. `take_pages` is called before a part is first allocated,
  // and says whether there is memory for it.
  SegmentPool(std::shared_ptr<Buffer> memory,
              std::function<bool(size_t offset, size_t size_bytes)> take_pages);

  // Contents are what the last user left. Null when nothing so large is free.
  std::shared_ptr<Buffer> Allocate(size_t size_bytes);

  // True if `data` is in the segment.
  bool Holds(const void* data) const {
    return static_cast<const uint8_t*>(data) >= memory_->data() &&
           static_cast<const uint8_t*>(data) <
               memory_->data() + memory_->size_bytes();
  }
  // From the segment's beginning to `data`, which is in it.
  uint64_t OffsetOf(const void* data) const {
    return static_cast<const uint8_t*>(data) - memory_->data();
  }

  // `buffer`, which came from Allocate(), is not allocated again.
  void Abandon(const Buffer& buffer);

  size_t used_bytes() const;  // Abandoned ones included.
  size_t abandoned_bytes() const;

 private:
  struct State {
    explicit State(size_t size_bytes)
        : free{{kHeaderBytes, size_bytes - kHeaderBytes}} {}

    // Returns the offset; 0 when there is no such gap.
    size_t TakeFirstGap(size_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex);
    void Release(size_t offset, size_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex);

    absl::Mutex mutex;
    // Sizes by offset. Neighbors are always joined.
    std::map<size_t, size_t> free ABSL_GUARDED_BY(mutex);
    std::map<size_t, size_t> abandoned ABSL_GUARDED_BY(mutex);
    size_t used_bytes ABSL_GUARDED_BY(mutex) = 0;
    size_t abandoned_bytes ABSL_GUARDED_BY(mutex) = 0;
  };

  // True if there are pages up to `end_bytes`.
  bool HasPages(size_t end_bytes) ABSL_LOCKS_EXCLUDED(pages_mutex_);

  const std::shared_ptr<Buffer> memory_;
  const std::function<bool(size_t offset, size_t size_bytes)> take_pages_;
  const std::shared_ptr<State> state_;  // Shared with the buffers.
  absl::Mutex pages_mutex_;
  // How far pages were taken.
  size_t paged_bytes_ ABSL_GUARDED_BY(pages_mutex_) = 0;
};

}  // namespace muster

#endif  // PS_CLIENT_SEGMENT_POOL_H_
