#ifndef COMMON_DATASET_ORDER_STAGES_H_
#define COMMON_DATASET_ORDER_STAGES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Stages that select and reorder elements without reading them. The same code
// orders elements and row numbers, so the order of a pipeline does not depend
// on whether its data is in memory.
//
//   kInvalidArgument  an argument is out of range

absl::StatusOr<NodePointer> MakeShuffle(NodePointer input, int64_t buffer_size,
                                        const ShuffleOptions& options);
absl::StatusOr<NodePointer> MakeRepeat(NodePointer input, int64_t count);
absl::StatusOr<NodePointer> MakeTake(NodePointer input, int64_t count);
absl::StatusOr<NodePointer> MakeSkip(NodePointer input, int64_t count);
absl::StatusOr<NodePointer> MakeShard(NodePointer input, int64_t shard_count,
                                      int64_t index);
absl::StatusOr<NodePointer> MakeShardByPipeline(NodePointer input);

}  // namespace muster

#endif  // COMMON_DATASET_ORDER_STAGES_H_
