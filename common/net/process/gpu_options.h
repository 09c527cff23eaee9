#ifndef COMMON_NET_PROCESS_GPU_OPTIONS_H_
#define COMMON_NET_PROCESS_GPU_OPTIONS_H_

#include "absl/status/statusor.h"

namespace muster {

// The flags for GPUs: settings of DeviceSet::OfProcess().
struct GpuOptions {
  int simulated_count = 0;       // --gpu_simulated; 0: the machine's GPUs.
  bool tensor_float_32 = false;  // As DeviceSet::EnableTensorFloat32().
  bool captures_steps = true;    // As DeviceSet::CaptureSteps().
};

// Reads --gpu_simulated, --tensor_float_32 and --gpu_graphs.
//   kInvalidArgument  a flag has an invalid value
absl::StatusOr<GpuOptions> ResolveGpuOptions();

}  // namespace muster

#endif  // COMMON_NET_PROCESS_GPU_OPTIONS_H_
