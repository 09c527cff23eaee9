#ifndef COMMON_COMPUTE_OPS_TESTING_STRING_TYPE_CASES_H_
#define COMMON_COMPUTE_OPS_TESTING_STRING_TYPE_CASES_H_

#include <vector>

#include "common/compute/ops/testing/image_type_cases.h"

namespace muster {

// Returns the cases of lookups, hashes and tokens.
std::vector<TypeCase> StringTypeCases();

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_TESTING_STRING_TYPE_CASES_H_
