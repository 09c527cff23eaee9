#ifndef COMMON_NET_COLLECTIVES_SHM_THREAD_MEMORY_H_
#define COMMON_NET_COLLECTIVES_SHM_THREAD_MEMORY_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/shm/peer_memory.h"

namespace muster::internal {

// The memory of ranks that are threads of one process, which share all memory.
class ThreadMemory final : public PeerMemory {
 public:
  Location Locate(const void* data, size_t size_bytes) const override;
  uint8_t* Resolve(int rank, const Location& location,
                   size_t size_bytes) const override;
  bool can_read() const override { return true; }
  absl::Status Read(int rank, uint64_t address, size_t size_bytes,
                    void* to) const override;
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, absl::Time deadline) override;
  void Interrupt() override {}
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_THREAD_MEMORY_H_
