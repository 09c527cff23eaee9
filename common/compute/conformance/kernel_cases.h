#ifndef COMMON_COMPUTE_CONFORMANCE_KERNEL_CASES_H_
#define COMMON_COMPUTE_CONFORMANCE_KERNEL_CASES_H_

#include <vector>

#include "common/compute/ops/testing/op_cases.h"

namespace muster {

// What a device's kernels are compared with the reference kernels on: dtypes,
// shapes (scalars, empty tensors, extents on both sides of vectors' widths) and
// attributes. Elementwise ops come from the registry with their samples; the
// other ops have cases of their own here.
std::vector<OpCase> AllKernelCases();

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_KERNEL_CASES_H_
