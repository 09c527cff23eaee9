#ifndef COMMON_DATASET_BATCH_STAGES_H_
#define COMMON_DATASET_BATCH_STAGES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Batch() and Unbatch().
//   kInvalidArgument  batch_size is out of range; or, to unbatch, a component
//                     is a scalar or the outermost extents differ

inline constexpr int64_t kBatchSizeMax = int64_t{1} << 30;
absl::StatusOr<NodePointer> MakeBatch(NodePointer input, int64_t batch_size,
                                      const BatchOptions& options);
absl::StatusOr<NodePointer> MakeUnbatch(NodePointer input);

// The number of batches of `cardinality` elements, which may be one of
// Dataset's constants ...
int64_t BatchCount(int64_t cardinality, int64_t batch_size,
                   bool drop_remainder);
// ... and the outermost extent of all of them, or Shape::kUnknown.
int64_t BatchExtent(int64_t cardinality, int64_t batch_size,
                    bool drop_remainder);

}  // namespace muster

#endif  // COMMON_DATASET_BATCH_STAGES_H_
