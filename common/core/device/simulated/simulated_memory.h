#ifndef COMMON_CORE_DEVICE_SIMULATED_SIMULATED_MEMORY_H_
#define COMMON_CORE_DEVICE_SIMULATED_SIMULATED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/core/device/driver/driver_api.h"

namespace muster::simulated {

// The memory of simulated GPUs: the functions cuMem... of a driver, with its
// results. Fresh memory is full of NaN. If memory is protected, a program ends
// by SIGSEGV if the host accesses it while no device work runs.
//
// Thread-safe.
class SimulatedMemory {
 public:
  static constexpr size_t kGranularityBytes = 64 << 10;

  enum class Kind { kPageable, kPinned, kDevice };

  SimulatedMemory(int device_count, size_t bytes_per_device, bool is_protected);
  ~SimulatedMemory();
  SimulatedMemory(const SimulatedMemory&) = delete;
  SimulatedMemory& operator=(const SimulatedMemory&) = delete;

  driver::Result Reserve(size_t size_bytes, driver::Address* address);
  driver::Result FreeReserved(driver::Address address, size_t size_bytes);
  driver::Result Create(int device, size_t size_bytes, uint64_t* handle);
  driver::Result Release(uint64_t handle);
  driver::Result Map(driver::Address address, size_t size_bytes,
                     uint64_t handle);
  driver::Result Unmap(driver::Address address, size_t size_bytes);
  driver::Result SetAccess(driver::Address address, size_t size_bytes);
  driver::Result AllocateHost(size_t size_bytes, void** data);
  driver::Result FreeHost(void* data);
  driver::Result RegisterHost(void* data, size_t size_bytes);
  driver::Result UnregisterHost(void* data);

  size_t FreeBytes(int device) const;

  // The kind of the memory at an address. Memory that was not allocated here is
  // pageable memory of the host.
  Kind KindAt(driver::Address address) const;
  // True if device work may use the whole range.
  bool IsAccessible(driver::Address address, size_t size_bytes) const;
  // False if the range begins in pinned memory and ends outside of it.
  bool IsOfOneKind(driver::Address address, size_t size_bytes) const;
  // True if device work may use the whole range and it is memory of a device.
  bool IsOnDevice(driver::Address address, size_t size_bytes) const {
    return KindAt(address) == Kind::kDevice &&
           IsAccessible(address, size_bytes);
  }

  // While an object of this class exists, device memory can be read and
  // written.
  class DeviceWork {
   public:
    explicit DeviceWork(SimulatedMemory* memory) : memory_(*memory) {
      memory_.BeginWork();
    }
    ~DeviceWork() { memory_.EndWork(); }
    DeviceWork(const DeviceWork&) = delete;
    DeviceWork& operator=(const DeviceWork&) = delete;

   private:
    SimulatedMemory& memory_;
  };

 private:
  struct Physical {
    int device = 0;
    int file = -1;
    size_t size_bytes = 0;
    bool is_mapped = false;
    bool is_released = false;  // Freed when it is unmapped.
  };
  struct Mapping {
    size_t size_bytes = 0;
    uint64_t handle = 0;
    bool is_accessible = false;
  };

  void BeginWork();
  void EndWork();
  int protection() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void ProtectAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(uint64_t handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t bytes_per_device_;
  const bool is_protected_;
  mutable absl::Mutex mutex_;
  std::vector<size_t> used_bytes_ ABSL_GUARDED_BY(mutex_);  // By device.
  std::map<driver::Address, size_t> reserved_ ABSL_GUARDED_BY(mutex_);
  std::map<driver::Address, Mapping> mappings_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Physical> physical_ ABSL_GUARDED_BY(mutex_);
  // Pinned memory, allocated or registered.
  std::map<driver::Address, size_t> host_ ABSL_GUARDED_BY(mutex_);
  std::set<driver::Address> registered_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_handle_ ABSL_GUARDED_BY(mutex_) = 0;
  int work_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::simulated

#endif  // COMMON_CORE_DEVICE_SIMULATED_SIMULATED_MEMORY_H_
