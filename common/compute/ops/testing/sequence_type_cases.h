#ifndef COMMON_COMPUTE_OPS_TESTING_SEQUENCE_TYPE_CASES_H_
#define COMMON_COMPUTE_OPS_TESTING_SEQUENCE_TYPE_CASES_H_

#include <vector>

#include "common/compute/ops/testing/image_type_cases.h"

namespace muster {

// Returns the cases of recurrences, sorting and checks.
std::vector<TypeCase> SequenceTypeCases();

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_TESTING_SEQUENCE_TYPE_CASES_H_
