#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_SCALE_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_SCALE_PARAMETERS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/base/host_device.h"

// The parameter of the kernels of scale.cu. Addresses are those of the device.
namespace muster::internal {

// to[i] = from[i] * factor. The factor is rounded to the type in which the
// kernel computes. The kernel of integers divides by `divisor` and rounds
// towards zero. `from` and `to` may be the same memory. One thread for each
// element.
//
// If `factor_on_device` is set, it is the factor, and the divisor is the
// integer closest to 1 / factor. Zero times anything is 0.
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
