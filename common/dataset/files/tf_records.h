#ifndef COMMON_DATASET_FILES_TF_RECORDS_H_
#define COMMON_DATASET_FILES_TF_RECORDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/record_files.h"

namespace muster {

// As TfRecordDataset(), for these files.
//   as CheckFiles()
absl::StatusOr<NodePointer> MakeTfRecords(std::vector<std::string> paths,
                                          const TfRecordOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_TF_RECORDS_H_
