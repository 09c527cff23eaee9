#ifndef COMMON_DATASET_FILES_CSV_HEADER_H_
#define COMMON_DATASET_FILES_CSV_HEADER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// Returns the names of the columns in the header of the first file that the
// patterns name; none if this file is empty.
//   as ExpandFilePatterns() and CsvReader
absl::StatusOr<std::vector<std::string>> ReadCsvHeader(
    absl::Span<const std::string> patterns, char delimiter);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_CSV_HEADER_H_
