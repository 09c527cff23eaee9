#ifndef COMMON_COMPUTE_CONFORMANCE_CASE_TYPES_H_
#define COMMON_COMPUTE_CONFORMANCE_CASE_TYPES_H_

#include <cstdint>
#include <vector>

#include "common/core/tensor/dtype.h"

// Short names for the tables of cases.
namespace muster {

inline constexpr DType kF32 = DType::kFloat32;

// A list of integers as an attribute of an op.
using Axes = std::vector<int64_t>;

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_CASE_TYPES_H_
