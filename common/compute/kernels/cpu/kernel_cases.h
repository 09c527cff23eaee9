#ifndef COMMON_COMPUTE_KERNELS_CPU_KERNEL_CASES_H_
#define COMMON_COMPUTE_KERNELS_CPU_KERNEL_CASES_H_

#include <string>
#include <vector>

#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {

// An input of a kernel, and between which numbers its elements lie.
struct KernelInput {
  DType dtype = DType::kFloat32;
  Shape shape;
  double low = -4;
  double high = 4;
};

struct KernelCase {
  std::string op;
  Attributes attributes;
  std::vector<KernelInput> inputs;
};

// Every op that needs a kernel, over dtypes, shapes (scalars, empty tensors,
// extents on both sides of vectors' widths) and attributes: what a device's
// kernels are compared with the reference on.
std::vector<KernelCase> AllKernelCases();

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_KERNEL_CASES_H_
