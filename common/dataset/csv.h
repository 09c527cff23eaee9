#ifndef COMMON_DATASET_CSV_H_
#define COMMON_DATASET_CSV_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/sources.h"

namespace muster {

//   kInvalidArgument  options do not fit each other
//   as CsvReader      when the header has to be looked at
absl::StatusOr<NodePointer> MakeCsv(absl::string_view path,
                                    const CsvOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_CSV_H_
