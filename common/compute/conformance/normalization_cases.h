#ifndef COMMON_COMPUTE_CONFORMANCE_NORMALIZATION_CASES_H_
#define COMMON_COMPUTE_CONFORMANCE_NORMALIZATION_CASES_H_

#include <vector>

#include "common/compute/ops/testing/op_cases.h"

namespace muster {

// Adds cases of batch normalization and its gradient.
void AddNormalizationCases(std::vector<OpCase>* cases);
// Adds cases of layer normalization and its gradient.
void AddLayerNormCases(std::vector<OpCase>* cases);

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_NORMALIZATION_CASES_H_
