#ifndef COMMON_COMPUTE_KERNELS_CUDA_TAPE_PLAN_H_
#define COMMON_COMPUTE_KERNELS_CUDA_TAPE_PLAN_H_

#include <cstdint>

#include "common/compute/kernels/cuda/device_code/tape.h"
#include "common/core/device/driver/launch_shape.h"

namespace muster::internal {

// Plans how the threads of the kernel for `compute_type` read the operands of a
// complete tape, and in which slots they keep the values: sets `access`,
// `element_bytes` and `row_step` of the operands, and `slots`. Returns the
// shape of the launch.
LaunchShape PlaceSlots(ElementType compute_type, Tape* tape);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_TAPE_PLAN_H_
