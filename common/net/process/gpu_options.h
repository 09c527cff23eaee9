#ifndef COMMON_NET_PROCESS_GPU_OPTIONS_H_
#define COMMON_NET_PROCESS_GPU_OPTIONS_H_

#include "absl/status/statusor.h"

namespace muster {

// What the command line says of GPUs: settings of DeviceSet::OfProcess().
struct GpuOptions {
  int simulated_count = 0;       // Of --gpu_simulated; 0: those of the machine.
  bool tensor_float_32 = false;  // As DeviceSet::EnableTensorFloat32().
  bool captures_steps = true;    // As DeviceSet::CaptureSteps().
};

// Reads --gpu_simulated, --tensor_float_32 and --gpu_graphs.
//   kInvalidArgument  a value is none of those that the flag takes
absl::StatusOr<GpuOptions> ResolveGpuOptions();

}  // namespace muster

#endif  // COMMON_NET_PROCESS_GPU_OPTIONS_H_
