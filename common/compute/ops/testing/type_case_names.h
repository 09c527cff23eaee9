#ifndef COMMON_COMPUTE_OPS_TESTING_TYPE_CASE_NAMES_H_
#define COMMON_COMPUTE_OPS_TESTING_TYPE_CASE_NAMES_H_

#include <cstdint>
#include <vector>

#include "common/core/tensor/dtype.h"

// Short names for the tables of cases of type rules.
namespace muster::type_case_names {

inline constexpr DType F = DType::kFloat32;
inline constexpr DType D = DType::kFloat64;
inline constexpr DType H = DType::kBfloat16;
inline constexpr DType I = DType::kInt32;
inline constexpr DType L = DType::kInt64;
inline constexpr DType B = DType::kBool;
inline constexpr DType S = DType::kString;

// A list of integers as an attribute of an op.
using List = std::vector<int64_t>;

}  // namespace muster::type_case_names

#endif  // COMMON_COMPUTE_OPS_TESTING_TYPE_CASE_NAMES_H_
