#ifndef COMMON_DATASET_COMBINE_STAGES_H_
#define COMMON_DATASET_COMBINE_STAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Stages that make one dataset of several.
//   kInvalidArgument  there are none, their types do not fit each other, or an
//                     option is out of range

inline constexpr int kCombinedInputCountMax = 4096;

absl::StatusOr<NodePointer> MakeZip(std::vector<NodePointer> inputs);
absl::StatusOr<NodePointer> MakeConcatenate(std::vector<NodePointer> inputs);
absl::StatusOr<NodePointer> MakeInterleave(std::vector<NodePointer> inputs,
                                           const InterleaveOptions& options);
// Of the datasets that `function` makes of the elements of `input`.
absl::StatusOr<NodePointer> MakeInterleave(NodePointer input,
                                           Dataset::ElementToDataset function,
                                           std::vector<TensorType> output_types,
                                           const InterleaveOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_COMBINE_STAGES_H_
