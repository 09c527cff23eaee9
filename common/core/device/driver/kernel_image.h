#ifndef COMMON_CORE_DEVICE_DRIVER_KERNEL_IMAGE_H_
#define COMMON_CORE_DEVICE_DRIVER_KERNEL_IMAGE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// A kernel compiled for the processor of this process, for the simulated GPU.
struct SimulatedKernel {
  const char* name;
  // True if its threads wait for each other: __syncthreads, shuffles, votes.
  bool has_barriers;
  // Runs one thread. `arguments` holds the address of each argument, as
  // cuLaunchKernelEx() takes them.
  void (*invoke)(void** arguments);
  // The size of each argument. A launch copies them: the kernel runs later.
  absl::Span<const uint32_t> argument_bytes;
};

// The kernels of one .cu file in all forms in which a device can load them.
// Made by the build rule device_kernels(); lives as long as the process.
struct KernelImage {
  // The build label's name, for messages.
  const char* name;
  // Compiled for GPUs. Empty if the build found no CUDA toolkit.
  absl::Span<const uint8_t> fatbin;
  absl::Span<const SimulatedKernel> simulated;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_DRIVER_KERNEL_IMAGE_H_
