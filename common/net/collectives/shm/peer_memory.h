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

// Access of a rank to the memory of the other ranks.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;

  // Returns the location of `data`: kShared if the other ranks can access all
  // of it, else kPrivate.
  virtual Location Locate(const void* data, size_t size_bytes) const = 0;

  // Returns the address in this process of `rank`'s `location`, which is
  // kShared. Returns null if the location is not `size_bytes` of allocated
  // memory.
  virtual uint8_t* Resolve(int rank, const Location& location,
                           size_t size_bytes) const = 0;

  // True if every rank can read the private memory of every other rank.
  virtual bool can_read() const = 0;

  // Copies `size_bytes` from `address` of `rank`'s process to `to`.
  //   kUnavailable  the process has ended
  //   kInternal     the system call fails
  virtual absl::Status Read(int rank, uint64_t address, size_t size_bytes,
                            void* to) const = 0;

  // Allocates memory for which Locate() returns kShared. All ranks call it
  // together, with the same size, which is not 0.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, absl::Time deadline) = 0;

  // Ends a running Allocate(). Thread-safe.
  virtual void Interrupt() = 0;
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_PEER_MEMORY_H_
