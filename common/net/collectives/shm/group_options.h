#ifndef COMMON_NET_COLLECTIVES_SHM_GROUP_OPTIONS_H_
#define COMMON_NET_COLLECTIVES_SHM_GROUP_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

// The options of shared_memory_group.h.
namespace muster {

inline constexpr int kSharedMemoryRanksMax = 64;

// How a group moves bytes. Every rank gives the same.
struct SharedMemoryTuning {
  // Tensors up to this size are copied beside a flag and combined by every rank
  // for itself: one barrier of the ranks in place of two.
  size_t one_shot_bytes_max = 2048;

  // Larger ones in memory that only their owner sees pass through shared memory
  // block by block up to this size. Above it the others read them out of the
  // owner's memory by process_vm_readv(2), where every rank may do that: no
  // copy, but the kernel's way took 2.2 to 3.5 times as long.
  size_t staged_bytes_max = SIZE_MAX;
};

struct SharedMemoryGroupOptions {
  int rank = 0;
  int size = 1;  // Up to kSharedMemoryRanksMax.
  uint64_t generation = 0;

  // Of all ranks, this one among them.
  std::vector<std::string> addresses;

  // A secret that the ranks of this group share, up to 64 bytes: a process that
  // does not show it is sent away.
  std::string token;

  // How long the others may take to come.
  absl::Duration timeout = absl::Seconds(30);

  SharedMemoryTuning tuning;
};

struct LocalGroupOptions {
  uint64_t generation = 0;
  SharedMemoryTuning tuning;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_SHM_GROUP_OPTIONS_H_
