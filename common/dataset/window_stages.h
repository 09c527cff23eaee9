#ifndef COMMON_DATASET_WINDOW_STAGES_H_
#define COMMON_DATASET_WINDOW_STAGES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Window().
//   kInvalidArgument  a number is below 1 or above kBatchSizeMax, or a
//                     component cannot get another dimension
absl::StatusOr<NodePointer> MakeWindow(NodePointer input, int64_t size,
                                       const SlidingWindowOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_WINDOW_STAGES_H_
