#ifndef COMMON_COMPUTE_CONFORMANCE_CONTROL_FLOW_CASES_H_
#define COMMON_COMPUTE_CONFORMANCE_CONTROL_FLOW_CASES_H_

#include <vector>

#include "common/compute/ops/testing/op_cases.h"

namespace muster {

// Adds branches and loops.
void AddControlFlowCases(std::vector<OpCase>* cases);

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_CONTROL_FLOW_CASES_H_
