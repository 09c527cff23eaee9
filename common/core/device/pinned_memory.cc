#include "common/core/device/pinned_memory.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_context.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/tensor/place.h"

namespace muster {
namespace {

constexpr size_t kBlockBytesMin = 4096;

}  // namespace

PinnedMemory::~PinnedMemory() {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [size_bytes, data] : free_) {
    (void)context_.TryCall(context_.api().cuMemFreeHost, data);
  }
}

absl::StatusOr<std::shared_ptr<Buffer>> PinnedMemory::Allocate(
    size_t size_bytes) {
  const size_t block_bytes =
      std::bit_ceil(std::max(size_bytes, kBlockBytesMin));
  void* data = nullptr;
  {
    const absl::MutexLock lock(&mutex_);
    if (const auto found = free_.find(block_bytes); found != free_.end()) {
      data = found->second;
      free_.erase(found);
    }
  }
  if (data == nullptr) {
    RETURN_IF_ERROR(context_.Call("cuMemHostAlloc",
                                  context_.api().cuMemHostAlloc, &data,
                                  block_bytes, driver::kHostAllocPortable));
    const absl::MutexLock lock(&mutex_);
    blocks_[data] = block_bytes;
  }
  return Buffer::Wrap(data, size_bytes,
                      [this, data, block_bytes] {
                        const absl::MutexLock lock(&mutex_);
                        free_.emplace(block_bytes, data);
                      },
                      {.kind = PlaceKind::kPinnedHost});
}

absl::StatusOr<std::shared_ptr<void>> PinnedMemory::Pin(void* data,
                                                        size_t size_bytes) {
  const auto page_bytes = static_cast<uintptr_t>(getpagesize());
  if (reinterpret_cast<uintptr_t>(data) % page_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "memory to pin does not begin at a page of ", page_bytes, " bytes"));
  }
  RETURN_IF_ERROR(context_.Call("cuMemHostRegister",
                                context_.api().cuMemHostRegister_v2, data,
                                size_bytes, driver::kHostRegisterPortable));
  {
    const absl::MutexLock lock(&mutex_);
    blocks_[data] = size_bytes;
  }
  return std::shared_ptr<void>(data, [this](void* pinned) {
    {
      const absl::MutexLock lock(&mutex_);
      blocks_.erase(pinned);
    }
    (void)context_.TryCall(context_.api().cuMemHostUnregister, pinned);
  });
}

bool PinnedMemory::Contains(const void* address) const {
  const absl::MutexLock lock(&mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return false;
  const auto& [begin, size_bytes] = *--after;
  return static_cast<const uint8_t*>(address) <
         static_cast<const uint8_t*>(begin) + size_bytes;
}

}  // namespace muster
