#ifndef COMMON_DATASET_SAMPLE_STAGES_H_
#define COMMON_DATASET_SAMPLE_STAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// SampleFromDatasets().
//   kInvalidArgument  there are no inputs, their types do not match, or a
//                     weight is negative, not finite or missing, or all are 0
absl::StatusOr<NodePointer> MakeSample(std::vector<NodePointer> inputs,
                                       const SampleOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_SAMPLE_STAGES_H_
