#ifndef COMMON_CORE_DEVICE_DEVICE_MEMORY_H_
#define COMMON_CORE_DEVICE_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/arena_planner.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"

namespace muster {

class DeviceContext;

// The purpose of an allocation: {"arena of graph", "train_step"}.
struct MemoryTag {
  absl::string_view what;
  absl::string_view name;
};

// Equivalent to: tf.config.experimental.get_memory_info, with the holders of
// memory in addition.
struct MemoryReport {
  struct Holder {
    std::string tag;  // "arena of graph \"train_step\"".
    size_t size_bytes = 0;
  };

  size_t current_bytes = 0;     // Bytes in allocated blocks.
  size_t peak_bytes = 0;        // The largest value of current_bytes.
  size_t mapped_bytes = 0;      // Taken from the GPU; grows, never shrinks.
  size_t limit_bytes = 0;       // Maximum of mapped_bytes.
  std::vector<Holder> holders;  // By tag, the largest first.
};

// The memory of one logical device: a range of addresses, reserved once, to
// which the GPU's memory is mapped in pieces as it is needed. The heap is
// contiguous, so a large block fits however late it is requested.
//
// Thread-safe. Outlives its buffers.
class DeviceMemory {
 public:
  struct Options {
    size_t limit_bytes = 0;
    // If true, maps the limit at once. Otherwise the memory grows.
    bool maps_all = false;
    // Memory is mapped in multiples of this.
    size_t piece_bytes = 32 << 20;
  };

  // Blocks begin at multiples of this.
  static constexpr size_t kAlignmentBytes = 256;

  //   kInvalidArgument  the limit is 0, or exceeds the memory of the GPU
  //   others            as DeviceContext::Call()
  static absl::StatusOr<std::unique_ptr<DeviceMemory>> Create(
      DeviceContext* context, const Options& options);

  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Allocates uninitialized memory; under a simulated driver, all floats are
  // NaN. Dropping the last reference frees it, once the work is done that
  // NoteUse() has recorded.
  //   kResourceExhausted  the limit, or the memory of the GPU, is used up;
  //                       names the tag, the sizes, the limit and the largest
  //                       holders
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t size_bytes,
                                                   const MemoryTag& tag);

  // Records that work on `stream` may use `buffer`. When `buffer` is freed, its
  // memory is not reused before the work on `stream` at that time is done.
  // `buffer` is of this memory, and is freed before the stream is destroyed.
  void NoteUse(const Buffer& buffer, DeviceStream* stream);

  // True if the address is in the range of this memory.
  bool Contains(const void* address) const {
    return reinterpret_cast<driver::Address>(address) - base_ <
           options_.limit_bytes;
  }

  MemoryReport report() const;
  void ResetPeak();

 private:
  struct Block {
    ArenaPlanner::Block place;
    std::string tag;
    size_t size_bytes = 0;
    std::vector<DeviceStream*> streams;
  };
  // A freed block, and the events that end the work that uses it.
  struct FreedBlock {
    ArenaPlanner::Block place;
    std::vector<std::unique_ptr<Event>> events;
  };

  DeviceMemory(DeviceContext* context, const Options& options)
      : context_(*context), options_(options) {}

  absl::Status Reserve();
  absl::Status MapUntil(size_t end_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MapPiece(size_t piece_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Free(uint8_t* data);
  // Makes the memory of freed blocks whose work is done available.
  void CollectFreedBlocks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the work of freed blocks.
  void AwaitFreedBlocks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleasePlace(const ArenaPlanner::Block& place)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Exhausted(size_t size_bytes, const std::string& tag,
                         const absl::Status& cause) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  MemoryReport MakeReport() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  DeviceContext& context_;
  Options options_;  // Constant after Reserve().
  driver::Address base_ = 0;
  driver::StreamHandle* poison_stream_ = nullptr;  // Under a simulated driver.

  mutable absl::Mutex mutex_;
  ArenaPlanner heap_ ABSL_GUARDED_BY(mutex_){kAlignmentBytes};
  std::map<uint8_t*, Block> blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<FreedBlock> freed_ ABSL_GUARDED_BY(mutex_);
  // Handle and size of each piece, in the order of addresses.
  std::vector<std::pair<uint64_t, size_t>> pieces_ ABSL_GUARDED_BY(mutex_);
  size_t mapped_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t current_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t peak_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_DEVICE_MEMORY_H_
