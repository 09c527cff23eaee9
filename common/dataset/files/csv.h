#ifndef COMMON_DATASET_FILES_CSV_H_
#define COMMON_DATASET_FILES_CSV_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/sources.h"

namespace muster {

// The header that has to be looked at is the first file's.
//   kInvalidArgument  options do not fit each other
//   as CheckFiles()   by the list of files
//   as CsvReader      when the header has to be looked at
absl::StatusOr<NodePointer> MakeCsv(std::vector<std::string> paths,
                                    const CsvOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_CSV_H_
