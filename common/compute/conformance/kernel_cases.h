#ifndef COMMON_COMPUTE_CONFORMANCE_KERNEL_CASES_H_
#define COMMON_COMPUTE_CONFORMANCE_KERNEL_CASES_H_

#include <vector>

#include "common/compute/ops/testing/op_cases.h"

namespace muster {

// Returns the cases on which the kernels of a device are compared with the
// reference kernels: dtypes, shapes (scalars, empty tensors, extents around the
// vector widths) and attributes. Elementwise ops come from the registry with
// their samples. The cases of the other ops are written out.
std::vector<OpCase> AllKernelCases();

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_KERNEL_CASES_H_
