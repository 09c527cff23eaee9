#ifndef COMMON_CORE_DEVICE_WORK_LIST_H_
#define COMMON_CORE_DEVICE_WORK_LIST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/stream.h"

namespace muster {

// Work of a stream in the order in which it was enqueued, with the bytes of all
// arguments: it can be enqueued later, and compared with other work. Clear()
// keeps the memory for reuse. Not thread-safe.
class WorkList {
 public:
  // Memory that copies use.
  enum class Memory { kDevice, kPinned };

  enum class Kind { kLaunch, kCopy, kFill, kLibraryCall };

  void Clear();
  void AddLaunch(const KernelFunction& kernel, const LaunchShape& shape,
                 absl::Span<const KernelArgument> arguments);
  void AddCopy(const void* from, Memory from_memory, void* to, Memory to_memory,
               size_t size_bytes);
  void AddFill(void* to, uint8_t byte, size_t size_bytes);
  void AddLibraryCall(LibraryCall call);

  size_t size() const { return size_; }
  Kind kind(size_t i) const { return items_[i].kind; }
  int launch_count() const { return launch_count_; }

  // Enqueues item i. Errors are those of the DeviceStream function.
  absl::Status Enqueue(size_t i, DeviceStream* stream) const;

  // True if item i of both lists differs only in what a graph node can change:
  // the arguments of a kernel, the addresses of a copy.
  bool IsLike(size_t i, const WorkList& other) const;
  // True if item i of both lists is the same work.
  bool IsSame(size_t i, const WorkList& other) const;

  // Returns the parameters of a node for item i, a launch. `addresses` holds
  // the array that the result points to.
  driver::KernelNodeParameters NodeParameters(
      size_t i, std::vector<void*>* addresses) const;
  // Return the addresses of item i, a copy.
  driver::Address CopyFrom(size_t i) const;
  driver::Address CopyTo(size_t i) const;

 private:
  struct Item {
    Kind kind = Kind::kLaunch;
    KernelFunction kernel;
    LaunchShape shape;
    // Arguments of a launch, or the identity of a library call: sizes in
    // sizes_, bytes in bytes_, both consecutive.
    size_t first_size = 0;
    size_t size_count = 0;
    size_t first_byte = 0;
    size_t byte_count = 0;
    // For a copy or a fill.
    const void* from = nullptr;
    void* to = nullptr;
    Memory from_memory = Memory::kDevice;
    Memory to_memory = Memory::kDevice;
    size_t size_bytes = 0;
    uint8_t byte = 0;
    std::function<absl::Status(driver::StreamHandle*)> call;
  };

  Item& Add(Kind kind);
  void AddBytes(const void* bytes, size_t size_bytes, Item* item);
  void ListAddresses(const Item& item, std::vector<void*>* addresses) const;
  bool HaveSameBytes(const Item& item, const WorkList& other,
                     const Item& other_item) const;

  std::vector<Item> items_;  // The first size_ are in use.
  size_t size_ = 0;
  int launch_count_ = 0;
  std::vector<size_t> sizes_;
  std::vector<uint8_t> bytes_;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_WORK_LIST_H_
