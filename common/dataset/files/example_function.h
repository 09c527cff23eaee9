#ifndef COMMON_DATASET_FILES_EXAMPLE_FUNCTION_H_
#define COMMON_DATASET_FILES_EXAMPLE_FUNCTION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/element_function.h"
#include "common/io/records/example.h"

namespace muster {

inline constexpr size_t kFeatureCountMax = 1024;

// As ParseExample().
absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>>
MakeExampleFunction(const std::vector<TensorType>& argument_types,
                    std::vector<FeatureSpec> features);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_EXAMPLE_FUNCTION_H_
