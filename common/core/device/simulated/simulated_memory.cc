#include "common/core/device/simulated/simulated_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

namespace muster::simulated {
namespace {

using driver::Address;
using driver::Result;

constexpr int kPoison = 0xff;  // NaN in every floating-point format.
constexpr size_t kPageBytes = 4096;

void* Pointer(Address address) { return reinterpret_cast<void*>(address); }

bool IsMultiple(size_t value) {
  return value > 0 && value % SimulatedMemory::kGranularityBytes == 0;
}

// Maps a range without memory, which cannot be accessed.
void* MapNothing(void* where, size_t size_bytes) {
  return mmap(where, size_bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
                  (where == nullptr ? 0 : MAP_FIXED),
              -1, 0);
}

bool FillFile(int file, size_t size_bytes) {
  if (ftruncate(file, static_cast<off_t>(size_bytes)) != 0) return false;
  void* const data =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return false;
  std::memset(data, kPoison, size_bytes);
  munmap(data, size_bytes);
  return true;
}

}  // namespace

SimulatedMemory::SimulatedMemory(int device_count, size_t bytes_per_device,
                                 bool is_protected)
    : bytes_per_device_(bytes_per_device),
      is_protected_(is_protected),
      used_bytes_(device_count) {}

SimulatedMemory::~SimulatedMemory() {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [address, size_bytes] : reserved_) {
    munmap(Pointer(address), size_bytes);
  }
  for (const auto& [handle, physical] : physical_) close(physical.file);
  for (const auto& [address, size_bytes] : host_) std::free(Pointer(address));
}

Result SimulatedMemory::Reserve(size_t size_bytes, Address* address) {
  if (!IsMultiple(size_bytes)) return driver::kInvalidValue;
  void* const data = MapNothing(nullptr, size_bytes);
  if (data == MAP_FAILED) return driver::kOutOfMemory;
  *address = reinterpret_cast<Address>(data);
  const absl::MutexLock lock(&mutex_);
  reserved_[*address] = size_bytes;
  return driver::kSuccess;
}

Result SimulatedMemory::FreeReserved(Address address, size_t size_bytes) {
  const absl::MutexLock lock(&mutex_);
  const auto found = reserved_.find(address);
  if (found == reserved_.end() || found->second != size_bytes) {
    return driver::kInvalidValue;
  }
  const auto first = mappings_.lower_bound(address);
  if (first != mappings_.end() && first->first < address + size_bytes) {
    return driver::kInvalidValue;  // Memory is still mapped to it.
  }
  munmap(Pointer(address), size_bytes);
  reserved_.erase(found);
  return driver::kSuccess;
}

Result SimulatedMemory::Create(int device, size_t size_bytes,
                               uint64_t* handle) {
  const absl::MutexLock lock(&mutex_);
  if (device < 0 || device >= static_cast<int>(used_bytes_.size())) {
    return driver::kInvalidDevice;
  }
  if (!IsMultiple(size_bytes)) return driver::kInvalidValue;
  if (size_bytes > bytes_per_device_ - used_bytes_[device]) {
    return driver::kOutOfMemory;
  }
  const int file = memfd_create("simulated_gpu", MFD_CLOEXEC);
  if (file < 0) return driver::kOutOfMemory;
  if (!FillFile(file, size_bytes)) {
    close(file);
    return driver::kOutOfMemory;
  }
  used_bytes_[device] += size_bytes;
  *handle = ++last_handle_;
  physical_[*handle] = {
      .device = device, .file = file, .size_bytes = size_bytes};
  return driver::kSuccess;
}

Result SimulatedMemory::Release(uint64_t handle) {
  const absl::MutexLock lock(&mutex_);
  const auto found = physical_.find(handle);
  if (found == physical_.end() || found->second.is_released) {
    return driver::kInvalidValue;
  }
  found->second.is_released = true;
  if (!found->second.is_mapped) Drop(handle);
  return driver::kSuccess;
}

void SimulatedMemory::Drop(uint64_t handle) {
  const auto found = physical_.find(handle);
  close(found->second.file);
  used_bytes_[found->second.device] -= found->second.size_bytes;
  physical_.erase(found);
}

Result SimulatedMemory::Map(Address address, size_t size_bytes,
                            uint64_t handle) {
  const absl::MutexLock lock(&mutex_);
  const auto found = physical_.find(handle);
  if (found == physical_.end() || found->second.is_mapped ||
      found->second.size_bytes != size_bytes) {
    return driver::kInvalidValue;
  }
  const auto range = reserved_.upper_bound(address);
  if (range == reserved_.begin() ||
      std::prev(range)->first + std::prev(range)->second <
          address + size_bytes) {
    return driver::kInvalidValue;  // Not a reserved range.
  }
  const auto next = mappings_.lower_bound(address);
  if ((next != mappings_.end() && next->first < address + size_bytes) ||
      (next != mappings_.begin() &&
       std::prev(next)->first + std::prev(next)->second.size_bytes > address)) {
    return driver::kInvalidValue;  // Memory is mapped to it already.
  }
  if (mmap(Pointer(address), size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
           found->second.file, 0) == MAP_FAILED) {
    return driver::kOutOfMemory;
  }
  found->second.is_mapped = true;
  mappings_[address] = {.size_bytes = size_bytes, .handle = handle};
  return driver::kSuccess;
}

Result SimulatedMemory::Unmap(Address address, size_t size_bytes) {
  const absl::MutexLock lock(&mutex_);
  const Address end = address + size_bytes;
  while (address < end) {
    const auto found = mappings_.find(address);
    if (found == mappings_.end() || address + found->second.size_bytes > end) {
      return driver::kInvalidValue;
    }
    MapNothing(Pointer(address), found->second.size_bytes);
    const uint64_t handle = found->second.handle;
    address += found->second.size_bytes;
    mappings_.erase(found);
    physical_.at(handle).is_mapped = false;
    if (physical_.at(handle).is_released) Drop(handle);
  }
  return driver::kSuccess;
}

Result SimulatedMemory::SetAccess(Address address, size_t size_bytes) {
  const absl::MutexLock lock(&mutex_);
  const Address end = address + size_bytes;
  while (address < end) {
    const auto found = mappings_.find(address);
    if (found == mappings_.end()) return driver::kInvalidValue;
    found->second.is_accessible = true;
    mprotect(Pointer(address), found->second.size_bytes, protection());
    address += found->second.size_bytes;
  }
  return driver::kSuccess;
}

Result SimulatedMemory::AllocateHost(size_t size_bytes, void** data) {
  if (size_bytes == 0) return driver::kInvalidValue;
  const size_t rounded =
      (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  *data = std::aligned_alloc(kPageBytes, rounded);
  if (*data == nullptr) return driver::kOutOfMemory;
  std::memset(*data, kPoison, rounded);
  const absl::MutexLock lock(&mutex_);
  host_[reinterpret_cast<Address>(*data)] = rounded;
  return driver::kSuccess;
}

Result SimulatedMemory::FreeHost(void* data) {
  const absl::MutexLock lock(&mutex_);
  const Address begin = reinterpret_cast<Address>(data);
  if (registered_.contains(begin) || host_.erase(begin) == 0) {
    return driver::kInvalidValue;
  }
  std::free(data);
  return driver::kSuccess;
}

Result SimulatedMemory::RegisterHost(void* data, size_t size_bytes) {
  const Address begin = reinterpret_cast<Address>(data);
  if (size_bytes == 0) return driver::kInvalidValue;
  const absl::MutexLock lock(&mutex_);
  // Pins whole pages, and no page twice.
  const Address first = begin / kPageBytes * kPageBytes;
  const Address end =
      (begin + size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const auto next = host_.lower_bound(end);
  if (next != host_.begin()) {
    const auto& [other, other_bytes] = *std::prev(next);
    if (other + other_bytes > first) {
      return driver::kHostMemoryAlreadyRegistered;
    }
  }
  host_[begin] = size_bytes;
  registered_.insert(begin);
  return driver::kSuccess;
}

Result SimulatedMemory::UnregisterHost(void* data) {
  const absl::MutexLock lock(&mutex_);
  const Address begin = reinterpret_cast<Address>(data);
  if (registered_.erase(begin) == 0) {
    return driver::kHostMemoryNotRegistered;
  }
  host_.erase(begin);
  return driver::kSuccess;
}

size_t SimulatedMemory::FreeBytes(int device) const {
  const absl::MutexLock lock(&mutex_);
  return bytes_per_device_ - used_bytes_[device];
}

SimulatedMemory::Kind SimulatedMemory::KindAt(Address address) const {
  const absl::MutexLock lock(&mutex_);
  const auto contains = [address](const std::map<Address, size_t>& ranges) {
    const auto next = ranges.upper_bound(address);
    return next != ranges.begin() &&
           address - std::prev(next)->first < std::prev(next)->second;
  };
  if (contains(reserved_)) return Kind::kDevice;
  return contains(host_) ? Kind::kPinned : Kind::kPageable;
}

bool SimulatedMemory::IsOfOneKind(Address address, size_t size_bytes) const {
  const absl::MutexLock lock(&mutex_);
  const auto next = host_.upper_bound(address);
  if (next == host_.begin()) return true;
  const auto& [begin, host_bytes] = *std::prev(next);
  return address >= begin + host_bytes ||
         address + size_bytes <= begin + host_bytes;
}

bool SimulatedMemory::IsAccessible(Address address, size_t size_bytes) const {
  const absl::MutexLock lock(&mutex_);
  const Address end = address + size_bytes;
  while (address < end) {
    const auto next = mappings_.upper_bound(address);
    if (next == mappings_.begin()) return false;
    const auto& [begin, mapping] = *std::prev(next);
    if (!mapping.is_accessible || begin + mapping.size_bytes <= address) {
      return false;
    }
    address = begin + mapping.size_bytes;
  }
  return true;
}

void SimulatedMemory::BeginWork() {
  const absl::MutexLock lock(&mutex_);
  if (++work_count_ == 1 && is_protected_) ProtectAll();
}

void SimulatedMemory::EndWork() {
  const absl::MutexLock lock(&mutex_);
  if (--work_count_ == 0 && is_protected_) ProtectAll();
}

int SimulatedMemory::protection() const {
  return work_count_ > 0 || !is_protected_ ? PROT_READ | PROT_WRITE : PROT_NONE;
}

void SimulatedMemory::ProtectAll() {
  for (const auto& [address, mapping] : mappings_) {
    if (!mapping.is_accessible) continue;
    mprotect(Pointer(address), mapping.size_bytes, protection());
  }
}

}  // namespace muster::simulated
