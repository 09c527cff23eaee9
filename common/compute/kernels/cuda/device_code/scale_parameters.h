#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_SCALE_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_SCALE_PARAMETERS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/base/host_device.h"

// The parameter of the kernels of scale.cu. Addresses are the device's.
namespace muster::internal {

// to[i] = from[i] * factor, which is rounded to the type in which the kernel
// computes; the kernel of integers divides by `divisor` towards zero. `from`
// and `to` may be the same memory. A thread for each element.
//
// With `factor_on_device`, that is the factor, and the divisor the integer next
// to 1 / factor. Zero times anything is 0.
struct ScaleParameters {
  int64_t count;
  DeviceElements from;
  DeviceElements to;
  double factor;
  int64_t divisor;
  const double* factor_on_device;  // May be null.
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_SCALE_PARAMETERS_H_
