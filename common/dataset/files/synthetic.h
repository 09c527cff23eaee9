#ifndef COMMON_DATASET_FILES_SYNTHETIC_H_
#define COMMON_DATASET_FILES_SYNTHETIC_H_

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/sources.h"

namespace muster {

//   kInvalidArgument  an option is out of range
absl::StatusOr<NodePointer> MakeSynthetic(const SyntheticOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_SYNTHETIC_H_
