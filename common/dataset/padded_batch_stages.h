#ifndef COMMON_DATASET_PADDED_BATCH_STAGES_H_
#define COMMON_DATASET_PADDED_BATCH_STAGES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// PaddedBatch() and BucketBySequenceLength().
//   kInvalidArgument  a batch size, boundary, component or multiple is out of
//                     range, or padded shapes or padding values do not fit the
//                     components
absl::StatusOr<NodePointer> MakePaddedBatch(NodePointer input,
                                            int64_t batch_size,
                                            const PaddedBatchOptions& options);
absl::StatusOr<NodePointer> MakeBucketBySequenceLength(
    NodePointer input, const BucketOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_PADDED_BATCH_STAGES_H_
