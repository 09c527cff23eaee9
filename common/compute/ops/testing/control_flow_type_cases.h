#ifndef COMMON_COMPUTE_OPS_TESTING_CONTROL_FLOW_TYPE_CASES_H_
#define COMMON_COMPUTE_OPS_TESTING_CONTROL_FLOW_TYPE_CASES_H_

#include <vector>

#include "common/compute/ops/testing/image_type_cases.h"

namespace muster {

// Returns the cases of branches and loops.
std::vector<TypeCase> ControlFlowTypeCases();

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_TESTING_CONTROL_FLOW_TYPE_CASES_H_
