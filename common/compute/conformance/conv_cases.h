#ifndef COMMON_COMPUTE_CONFORMANCE_CONV_CASES_H_
#define COMMON_COMPUTE_CONFORMANCE_CONV_CASES_H_

#include <vector>

#include "common/compute/ops/testing/op_cases.h"

namespace muster {

// Adds cases of convolutions and their gradients: strides, dilations and
// paddings, with channel counts around the block sizes of oneDNN.
void AddConvCases(std::vector<OpCase>* cases);
// Adds cases of pooling and its gradients.
void AddPoolCases(std::vector<OpCase>* cases);

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_CONV_CASES_H_
