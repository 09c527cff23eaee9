#ifndef COMMON_CORE_DEVICE_PINNED_MEMORY_H_
#define COMMON_CORE_DEVICE_PINNED_MEMORY_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/core/tensor/buffer.h"

namespace muster {

class DeviceContext;

// Host memory that a device reads and writes directly, so that copies do not
// block the host. Pinning takes milliseconds: freed memory is kept and reused.
//
// Thread-safe. Outlives its buffers.
class PinnedMemory {
 public:
  explicit PinnedMemory(DeviceContext* context) : context_(*context) {}
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Allocates uninitialized memory. The caller keeps it until the work that
  // uses it is done.
  //   others  as DeviceContext::Call()
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t size_bytes);

  // Pins memory of another owner until the result is dropped, which must happen
  // before the memory is freed. The pages of the memory contain no other
  // memory.
  //   kInvalidArgument  the memory does not begin at a page
  //   others            as DeviceContext::Call()
  absl::StatusOr<std::shared_ptr<void>> Pin(void* data, size_t size_bytes);

  // True if the address is in memory that was allocated or pinned here.
  bool Contains(const void* address) const;

 private:
  DeviceContext& context_;
  mutable absl::Mutex mutex_;
  // Free blocks by size, which is a power of two.
  std::multimap<size_t, void*> free_ ABSL_GUARDED_BY(mutex_);
  // The size of each allocated block, free or in use, and of each pinned range,
  // by address.
  std::map<const void*, size_t, std::less<>> blocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_PINNED_MEMORY_H_
