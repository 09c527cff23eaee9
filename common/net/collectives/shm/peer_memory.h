#ifndef COMMON_NET_COLLECTIVES_SHM_PEER_MEMORY_H_
#define COMMON_NET_COLLECTIVES_SHM_PEER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/shm/control_block.h"

namespace muster::internal {

// How a rank reaches the memory of the others.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;

  // kShared where the others can reach all of it, otherwise kPrivate.
  virtual Location Locate(const void* data, size_t size_bytes) const = 0;

  // The address in this process of `rank`'s `location`, which is kShared; null
  // if it is not `size_bytes` of what was allocated.
  virtual uint8_t* Resolve(int rank, const Location& location,
                           size_t size_bytes) const = 0;

  // True if every rank can read private memory of every other.
  virtual bool can_read() const = 0;

  // Copies from address `address` of `rank`'s process.
  //   kUnavailable  the process is gone
  //   kInternal     the system refuses
  virtual absl::Status Read(int rank, uint64_t address, size_t size_bytes,
                            void* to) const = 0;

  // Memory that Locate() finds afterwards. All ranks call it together, having
  // agreed about the size, which is not 0.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, absl::Time deadline) = 0;

  // Ends an Allocate() under way. Thread-safe.
  virtual void Interrupt() = 0;
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_PEER_MEMORY_H_
