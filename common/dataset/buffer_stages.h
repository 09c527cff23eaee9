#ifndef COMMON_DATASET_BUFFER_STAGES_H_
#define COMMON_DATASET_BUFFER_STAGES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Cache() and Prefetch().
//   kInvalidArgument  buffer_size is out of range

absl::StatusOr<NodePointer> MakeCache(NodePointer input);

inline constexpr int64_t kPrefetchBufferSizeMax = 1 << 16;
absl::StatusOr<NodePointer> MakePrefetch(NodePointer input,
                                         int64_t buffer_size);

}  // namespace muster

#endif  // COMMON_DATASET_BUFFER_STAGES_H_
