#include "common/net/collectives/shm/thread_memory.h"

#include <cstring>
#include <utility>

#include "common/core/base/status_macros.h"
#include "common/net/collectives/shm/shared_segment.h"

namespace muster::internal {

Location ThreadMemory::Locate(const void* data, size_t) const {
  return {.kind = Location::Kind::kShared,
          .offset = reinterpret_cast<uint64_t>(data)};
}

uint8_t* ThreadMemory::Resolve(int, const Location& location, size_t) const {
  return reinterpret_cast<uint8_t*>(location.offset);
}

absl::Status ThreadMemory::Read(int, uint64_t address, size_t size_bytes,
                                void* to) const {
  std::memcpy(to, reinterpret_cast<const void*>(address), size_bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Buffer>> ThreadMemory::Allocate(
    size_t size_bytes, absl::Time) {
  ASSIGN_OR_RETURN(MappedMemory mapped, MappedMemory::Private(size_bytes));
  auto memory = std::make_shared<MappedMemory>(std::move(mapped));
  return Buffer::Wrap(memory->data(), size_bytes,
                      [memory]() mutable { memory.reset(); });
}

}  // namespace muster::internal
