#ifndef COMMON_DATASET_COMBINE_STAGES_H_
#define COMMON_DATASET_COMBINE_STAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Stages that combine several datasets into one.
//   kInvalidArgument  there are none, their types do not match, or an option is
//                     out of range

inline constexpr int kCombinedInputCountMax = 4096;

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
