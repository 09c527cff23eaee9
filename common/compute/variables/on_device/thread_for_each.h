#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_THREAD_FOR_EACH_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_THREAD_FOR_EACH_H_

#include <cstdint>

#include "common/core/device/driver/launch_shape.h"

namespace muster {

// Returns the shape of a launch with one thread for each of `count` elements
// and `parts` rows of blocks.
inline LaunchShape ThreadForEach(int64_t count, uint32_t parts = 1) {
  constexpr int64_t kThreads = 256;
  return {.grid = {static_cast<uint32_t>((count + kThreads - 1) / kThreads),
                   parts, 1},
          .block = {static_cast<uint32_t>(kThreads), 1, 1}};
}

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_THREAD_FOR_EACH_H_
