#ifndef COMMON_DATASET_MEMORY_SOURCES_H_
#define COMMON_DATASET_MEMORY_SOURCES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Sources of tensors in memory.
//   kInvalidArgument  there are no components, one is invalid or (for slices)
//                     has no rows or a different number of them; or the step of
//                     a range is 0

absl::StatusOr<NodePointer> MakeFromTensors(Element components);
absl::StatusOr<NodePointer> MakeFromTensorSlices(Element components);
absl::StatusOr<NodePointer> MakeRange(int64_t start, int64_t stop,
                                      int64_t step);

}  // namespace muster

#endif  // COMMON_DATASET_MEMORY_SOURCES_H_
