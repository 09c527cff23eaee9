#ifndef COMMON_CORE_SYSTEM_AVAILABLE_MEMORY_H_
#define COMMON_CORE_SYSTEM_AVAILABLE_MEMORY_H_

#include <cstddef>

namespace muster {

// Returns the maximum number of bytes that this process may use: the smallest
// of the machine's memory, the limits of its control groups (version 1 and 2),
// what Slurm grants its job on this node, and its limit of address space
// (`ulimit -v`). Memory in use is not subtracted.
//
// Sources: getrlimit(2); sbatch(1), "Output environment variables".
size_t AvailableMemoryBytes();

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_AVAILABLE_MEMORY_H_
