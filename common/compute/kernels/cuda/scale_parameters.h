#ifndef COMMON_COMPUTE_KERNELS_CUDA_SCALE_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_SCALE_PARAMETERS_H_

#include "common/compute/kernels/cuda/device_elements.h"
#include "common/core/base/host_device.h"

// The parameter of the kernels of scale.cu. Addresses are the device's.
namespace muster::internal {

// to[i] = from[i] * factor, which is rounded to the type in which the kernel
// computes; the kernel of integers divides by `divisor` towards zero. `from`
// and `to` may be the same memory. A thread for each element.
struct ScaleParameters {
  int64_t count;
  DeviceElements from;
  DeviceElements to;
  double factor;
  int64_t divisor;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_SCALE_PARAMETERS_H_
