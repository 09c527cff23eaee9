#ifndef COMMON_DATASET_FILES_TEXT_LINES_H_
#define COMMON_DATASET_FILES_TEXT_LINES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/record_files.h"

namespace muster {

// As TextLineDataset(), for these files.
//   as CheckFiles()
absl::StatusOr<NodePointer> MakeTextLines(std::vector<std::string> paths,
                                          const TextLineOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_TEXT_LINES_H_
