#ifndef COMMON_DATASET_FILES_CSV_H_
#define COMMON_DATASET_FILES_CSV_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/sources.h"

namespace muster {

// If a header must be read, it is that of the first file.
//   kInvalidArgument  options contradict each other
//   kInvalidArgument  the first record does not have the types of the columns;
//                     as kCsvNotANumberUrl says
//   as CheckFiles()   for the list of files
//   as CsvReader      if the header must be read
absl::StatusOr<NodePointer> MakeCsv(std::vector<std::string> paths,
                                    const CsvOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_CSV_H_
