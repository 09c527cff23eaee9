#ifndef COMMON_COMPUTE_CONFORMANCE_RECURRENCE_CASES_H_
#define COMMON_COMPUTE_CONFORMANCE_RECURRENCE_CASES_H_

#include <vector>

#include "common/compute/ops/testing/op_cases.h"

namespace muster {

// Adds cases of Recurrence and RecurrenceGrad: all cells, with and without
// masks and scales, in both directions.
void AddRecurrenceCases(std::vector<OpCase>* cases);

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_RECURRENCE_CASES_H_
