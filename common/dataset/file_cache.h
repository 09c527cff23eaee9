#ifndef COMMON_DATASET_FILE_CACHE_H_
#define COMMON_DATASET_FILE_CACHE_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Keeps the elements of the first complete pass in a file. The file has a
// temporary name until the pass ends and is then renamed, so that it is
// complete or absent. If there are several input pipelines, each has its own
// file, "<filename>_<pipeline>-of-<pipelines>".
//
// The file is a TFRecord file: a CacheFileHeader, one record per element, and a
// last record with their number. It identifies the definition of the dataset,
// as far as that can be serialized, and other definitions reject it.
//   kInvalidArgument  no filename, or the dataset is infinite
// Errors of its elements:
//   kFailedPrecondition  the file was created from another dataset
//   kDataLoss            it is damaged; gives the offset
//   as Disk              it cannot be written or read
absl::StatusOr<NodePointer> MakeFileCache(NodePointer input,
                                          std::string filename);

}  // namespace muster

#endif  // COMMON_DATASET_FILE_CACHE_H_
