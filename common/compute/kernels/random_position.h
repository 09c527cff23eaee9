#ifndef COMMON_COMPUTE_KERNELS_RANDOM_POSITION_H_
#define COMMON_COMPUTE_KERNELS_RANDOM_POSITION_H_

#include <cstdint>

#include "common/compute/kernels/kernel.h"
#include "common/core/tensor/tensor.h"

namespace muster::internal {

// Returns the position of the first output element of a random op in its stream
// of random numbers. An op with a second input draws for the rows of a batch,
// whose positions depend on the global batch.
inline uint64_t FirstRandomElement(const KernelArguments& arguments) {
  const Tensor& out = *arguments.outputs[0];
  const bool is_batch = arguments.inputs.size() == 2;
  if (!is_batch || out.shape().rank() == 0 || out.element_count() == 0) {
    return 0;
  }
  const auto row = static_cast<uint64_t>(out.element_count()) /
                   static_cast<uint64_t>(out.shape().dim(0));
  return static_cast<uint64_t>(arguments.example_offset) * row;
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_RANDOM_POSITION_H_
