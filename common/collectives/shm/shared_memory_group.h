#ifndef COMMON_COLLECTIVES_SHM_SHARED_MEMORY_GROUP_H_
#define COMMON_COLLECTIVES_SHM_SHARED_MEMORY_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/collectives/communicator.h"
#include "common/collectives/shm/shared_memory_endpoint.h"

// Groups whose ranks reach each other's memory: processes of one host, or
// threads of one process.
//
//   ASSIGN_OR_RETURN(auto endpoint, SharedMemoryEndpoint::Listen());
//   ... tell endpoint->address() to the others, learn theirs ...
//   ASSIGN_OR_RETURN(auto communicator,
//                    ConnectSharedMemoryGroup(std::move(endpoint), options));
namespace muster {

inline constexpr int kSharedMemoryRanksMax = 64;

// How a group moves bytes. Every rank gives the same.
struct SharedMemoryTuning {
  // Tensors up to this size are copied beside a flag and combined by every rank
  // for itself: one meeting of the ranks in place of two.
  size_t one_shot_bytes_max = 2048;

  // Larger ones in plain memory go through shared memory up to this size, and
  // above it are read out of the owner's memory by process_vm_readv(2) where
  // every rank may do that. 0 reads always, SIZE_MAX never.
  size_t staged_bytes_max = 64 * 1024;
};

struct SharedMemoryGroupOptions {
  int rank = 0;
  int size = 1;  // Up to kSharedMemoryRanksMax.
  uint64_t generation = 0;

  // Of all ranks, this one among them.
  std::vector<std::string> addresses;

  // A secret that the ranks of this group share, up to 64 bytes: whoever does
  // not show it is sent away.
  std::string token;

  // How long the others may take to come.
  absl::Duration timeout = absl::Seconds(30);

  SharedMemoryTuning tuning;
};

// Returns when this rank has met all others. Called by all ranks at about the
// same time; no rank waits for `endpoint`'s caller before it is called.
//
//   kInvalidArgument   rank, size, addresses or token make no sense, or another
//                      rank's size, generation or tuning differs: says which
//   kDeadlineExceeded  names the ranks that have not come
//   kUnavailable       a rank's endpoint is gone, or not on this host; names it
//   kResourceExhausted no more files or memory
absl::StatusOr<std::unique_ptr<Communicator>> ConnectSharedMemoryGroup(
    std::unique_ptr<SharedMemoryEndpoint> endpoint,
    const SharedMemoryGroupOptions& options);

struct LocalGroupOptions {
  uint64_t generation = 0;
  SharedMemoryTuning tuning;
};

// A group of threads of this process, one communicator for each, by rank. All
// memory is as good as that of Allocate().
//
//   kInvalidArgument   `size` is less than 1 or over kSharedMemoryRanksMax
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateLocalGroup(
    int size, const LocalGroupOptions& options = LocalGroupOptions());

}  // namespace muster

#endif  // COMMON_COLLECTIVES_SHM_SHARED_MEMORY_GROUP_H_
