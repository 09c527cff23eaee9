#ifndef COMMON_CORE_DEVICE_DRIVER_LAUNCH_SHAPE_H_
#define COMMON_CORE_DEVICE_DRIVER_LAUNCH_SHAPE_H_

#include <cstdint>

namespace muster {

// How many threads run a kernel: `grid` blocks of `block` threads, along x, y
// and z. Equivalent to: CUlaunchConfig, <<<grid, block, shared_bytes>>>.
struct LaunchShape {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  // Memory of each block besides its __shared__ variables.
  uint32_t shared_bytes = 0;

  bool operator==(const LaunchShape&) const = default;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_DRIVER_LAUNCH_SHAPE_H_
