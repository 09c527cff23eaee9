#ifndef COMMON_NET_COLLECTIVES_SHM_PROCESS_MEMORY_H_
#define COMMON_NET_COLLECTIVES_SHM_PROCESS_MEMORY_H_

#include <array>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/shm/peer_memory.h"
#include "common/net/collectives/shm/rank_sockets.h"
#include "common/net/collectives/shm/shared_segment.h"

namespace muster::internal {

// The memory of ranks that are processes. Shared memory consists of memory
// files that the processes have sent to each other. Private memory can be read
// by process_vm_readv(2), if permitted.
//
// Not thread-safe, except for Interrupt().
class ProcessMemory final : public PeerMemory {
 public:
  // `links` is borrowed.
  ProcessMemory(int rank, const std::vector<PeerLink>* links);

  // Creates a segment on each rank and exchanges them. Returns the segments of
  // all ranks, by rank, mapped into this process. Sends `words` to the others,
  // and writes theirs to `words_of` unless it is null.
  //   kUnavailable, kDeadlineExceeded  name the rank
  //   kResourceExhausted               no memory or file descriptor is
  //                                    available
  absl::StatusOr<std::shared_ptr<std::vector<MappedMemory>>> ExchangeSegments(
      size_t size_bytes, const std::array<uint64_t, 2>& words,
      absl::Time deadline, std::vector<std::array<uint64_t, 2>>* words_of);

  void set_can_read(bool can_read) { can_read_ = can_read; }

  Location Locate(const void* data, size_t size_bytes) const override;
  uint8_t* Resolve(int rank, const Location& location,
                   size_t size_bytes) const override;
  bool can_read() const override { return can_read_; }
  absl::Status Read(int rank, uint64_t address, size_t size_bytes,
                    void* to) const override;
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, absl::Time deadline) override;
  void Interrupt() override;

 private:
  const int rank_;
  const std::vector<PeerLink>* const links_;
  const FileDescriptor interrupt_;
  bool can_read_ = false;
  std::vector<std::shared_ptr<std::vector<MappedMemory>>> segments_;
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_PROCESS_MEMORY_H_
