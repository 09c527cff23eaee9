#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_GATE_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_GATE_PARAMETERS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/base/host_device.h"

// The parameters of the kernels of gate.cu, which run in one thread. Addresses
// are those of the device.
namespace muster::internal {

// Returns the number of the step after `step`: never 0, and wraps around so
// that it never overflows.
MUSTER_HOST_DEVICE inline int32_t NextStep(int32_t step) {
  return step % (1 << 30) + 1;
}

// Sets gate->step to the number of the next step.
struct BeginStepParameters {
  DeviceGate* gate;
};

// Closes the gate unless the weight of the step's gradients is finite and not
// negative.
struct CheckWeightParameters {
  const float* weight;
  DeviceGate* gate;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_GATE_PARAMETERS_H_
