#ifndef COMMON_DATASET_FILE_CACHE_H_
#define COMMON_DATASET_FILE_CACHE_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// Keeps the elements of the first whole pass in a file, beside it until the
// pass is at its end, and then renamed, so that it is there whole or not at
// all. Input pipelines that are one of several have files of their own,
// "<filename>_<pipeline>-of-<pipelines>".
//
// The file is a TFRecord file: a CacheFileHeader, a record for each element,
// and a last one that says how many there are. It says which definition it was
// made of, as far as that can be sent, and is refused by any other.
//   kInvalidArgument  no filename, or the dataset has no end
// Of its elements:
//   kFailedPrecondition  the file was made of another dataset
//   kDataLoss            it is damaged; names the place
//   as Disk              it cannot be written or read
absl::StatusOr<NodePointer> MakeFileCache(NodePointer input,
                                          std::string filename);

}  // namespace muster

#endif  // COMMON_DATASET_FILE_CACHE_H_
