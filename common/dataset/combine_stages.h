#ifndef COMMON_DATASET_COMBINE_STAGES_H_
#define COMMON_DATASET_COMBINE_STAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Stages that combine several datasets into one.
//   kInvalidArgument  there are none, their types do not match, or an option is
//                     out of range

inline constexpr int kCombinedInputCountMax = 4096;

// Checks the number of inputs.
absl::Status CheckCombinedInputs(const char* stage,
                                 const std::vector<NodePointer>& inputs);
// Returns the common types of the elements of all inputs: an extent that
// differs is unknown.
absl::StatusOr<std::vector<TensorType>> CommonTypes(
    const char* stage, const std::vector<NodePointer>& inputs);
// Returns the cardinality of all elements of all inputs.
int64_t SumOfCardinalities(const std::vector<NodePointer>& inputs);

absl::StatusOr<NodePointer> MakeZip(std::vector<NodePointer> inputs);
absl::StatusOr<NodePointer> MakeConcatenate(std::vector<NodePointer> inputs);
absl::StatusOr<NodePointer> MakeInterleave(std::vector<NodePointer> inputs,
                                           const InterleaveOptions& options);
// Interleaves the datasets that `function` returns for the elements of `input`.
absl::StatusOr<NodePointer> MakeInterleave(NodePointer input,
                                           Dataset::ElementToDataset function,
                                           std::vector<TensorType> output_types,
                                           const InterleaveOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_COMBINE_STAGES_H_
