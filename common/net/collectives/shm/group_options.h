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

// How a group transfers bytes. Equal on every rank.
struct SharedMemoryTuning {
  // Tensors up to this size are reduced one-shot: each rank copies its tensor
  // to a shared slot, and every rank reduces all slots by itself. This takes
  // one barrier instead of two.
  size_t one_shot_bytes_max = 2048;

  // Larger tensors in private memory, up to this size, are copied through
  // shared memory in blocks. Above this size, the other ranks read them from
  // the owner's memory by process_vm_readv(2), if every rank has the
  // permission. That saves a copy, but took 2.2 to 3.5 times as long.
  size_t staged_bytes_max = SIZE_MAX;
};

struct SharedMemoryGroupOptions {
  int rank = 0;
  int size = 1;  // Up to kSharedMemoryRanksMax.
  uint64_t generation = 0;

  // Endpoint addresses of all ranks, including this one.
  std::vector<std::string> addresses;

  // A secret of 1 to 64 bytes that the ranks of this group share. A process
  // without it is refused.
  std::string token;

  // How long the other ranks may take to connect.
  absl::Duration timeout = absl::Seconds(30);

  SharedMemoryTuning tuning;
};

struct LocalGroupOptions {
  uint64_t generation = 0;
  SharedMemoryTuning tuning;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_SHM_GROUP_OPTIONS_H_
