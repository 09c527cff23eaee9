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

// Allocates buffers in a segment that this process shares with others.
//
// Other processes access a buffer only while this process holds it, with one
// exception: after an exchange whose outcome is unknown, a server may still
// access it. Such a buffer is abandoned: its memory is not reused while the
// segment exists.
//
// Thread-safe. Buffers may outlive the pool.
class SegmentPool {
 public:
  // Buffers begin at multiples of this offset.
  static constexpr size_t kAlignmentBytes = 64;
  // Returns `size_bytes` rounded up to a multiple of kAlignmentBytes.
  static constexpr size_t RoundedUp(size_t size_bytes) {
    return size_bytes + -size_bytes % kAlignmentBytes;
  }
  // The size of the header before the first buffer. No buffer has offset 0.
  static constexpr size_t kHeaderBytes = 4096;

  // `memory` is the whole segment, page-aligned, and keeps it mapped.
  // `allocate_pages` is called before a part is used for the first time; it
  // returns false if there is no memory for that part.
  SegmentPool(
      std::shared_ptr<Buffer> memory,
      std::function<bool(size_t offset, size_t size_bytes)> allocate_pages);

  // Returns a buffer with unspecified contents, or null if no free range is
  // large enough.
  std::shared_ptr<Buffer> Allocate(size_t size_bytes);

  // True if `data` is in the segment.
  bool Holds(const void* data) const {
    return static_cast<const uint8_t*>(data) >= memory_->data() &&
           static_cast<const uint8_t*>(data) <
               memory_->data() + memory_->size_bytes();
  }
  // Returns the offset of `data`, which must be in the segment.
  uint64_t OffsetOf(const void* data) const {
    return static_cast<const uint8_t*>(data) - memory_->data();
  }

  // Withholds the memory of `buffer`, which Allocate() returned, from reuse.
  void Abandon(const Buffer& buffer);

  size_t used_bytes() const;  // Includes abandoned buffers.
  size_t abandoned_bytes() const;

 private:
  struct State {
    explicit State(size_t size_bytes)
        : free{{kHeaderBytes, size_bytes - kHeaderBytes}} {}

    // Takes the first gap of at least `size_bytes` and returns its offset, or 0
    // if there is none.
    size_t TakeFirstGap(size_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex);
    void Release(size_t offset, size_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex);

    absl::Mutex mutex;
    // Sizes of the gaps by offset. Adjacent gaps are always merged.
    std::map<size_t, size_t> free ABSL_GUARDED_BY(mutex);
    std::map<size_t, size_t> abandoned ABSL_GUARDED_BY(mutex);
    size_t used_bytes ABSL_GUARDED_BY(mutex) = 0;
    size_t abandoned_bytes ABSL_GUARDED_BY(mutex) = 0;
  };

  // Allocates pages up to `end_bytes`. Returns false if there is no memory.
  bool HasPages(size_t end_bytes) ABSL_LOCKS_EXCLUDED(pages_mutex_);

  const std::shared_ptr<Buffer> memory_;
  const std::function<bool(size_t offset, size_t size_bytes)> take_pages_;
  const std::shared_ptr<State> state_;  // Shared with the buffers.
  absl::Mutex pages_mutex_;
  // Pages are allocated up to this offset.
  size_t paged_bytes_ ABSL_GUARDED_BY(pages_mutex_) = 0;
};

}  // namespace muster

#endif  // PS_CLIENT_SEGMENT_POOL_H_
