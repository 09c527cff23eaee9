#ifndef COMMON_CORE_DEVICE_SIMULATED_SIMULATED_GRID_H_
#define COMMON_CORE_DEVICE_SIMULATED_SIMULATED_GRID_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/core/device/driver/kernel_image.h"
#include "common/core/device/driver/launch_shape.h"

namespace muster {

namespace simulated {

// The limit of all CUDA GPUs.
inline constexpr uint64_t kThreadsPerBlockMax = 1024;

}  // namespace simulated

// Runs a kernel on this thread and returns when all blocks are done. Blocks run
// one after the other. The threads of a block take turns: each runs until it
// waits for others. `seed` selects the order in which blocks and threads are
// visited; 0 is ascending order. A kernel whose result depends on the seed has
// a race.
//
// `arguments` holds the address of each kernel argument. All memory that the
// kernel uses must be memory of this process.
//   kInvalidArgument     the shape exceeds CUDA's limits: 1024 threads, 48 KiB
//                        of shared memory, or an extent is 0
//   kFailedPrecondition  threads wait at different barriers, or wait although
//                        the kernel is listed as plain
//   kDeadlineExceeded    the threads wait for each other forever; says how many
//                        wait where: "deadlock: 40 of 256 threads at a barrier"
// After an error the kernel's output is undefined.
//
// Thread-safe; one grid runs at a time. Each calling thread keeps the stacks of
// its largest block.
absl::Status RunSimulatedGrid(const SimulatedKernel& kernel,
                              const LaunchShape& shape, void** arguments,
                              uint64_t seed);

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_SIMULATED_SIMULATED_GRID_H_
