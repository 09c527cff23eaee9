#ifndef COMMON_DATASET_FILES_IDX_H_
#define COMMON_DATASET_FILES_IDX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/sources.h"

namespace muster {

// The IDX format: two zero bytes, one byte for the type, one byte for the
// number of dimensions, the extents as big-endian uint32, then big-endian
// values. Source: "The MNIST database of handwritten digits",
// http://yann.lecun.com/exdb/mnist/

// Reads the values of a file; int8 and int16 are widened to int32.
//   kInvalidArgument  it is not IDX, or its length contradicts its header;
//                     names the file, what was expected and what was found
//   as InputFile      it cannot be read
absl::StatusOr<Tensor> ReadIdx(absl::string_view path);

// Returns the type of ReadIdx(path), reading only the header.
absl::StatusOr<TensorType> ReadIdxType(absl::string_view path);

// The records of `paths`. With `label_paths`, of which there are equally many,
// {record, label}. Reads all headers unless `options` describe the records.
//   kInvalidArgument  options contradict each other, or the numbers of records
//                     and labels of a file differ
//   as CheckFiles()   for the list of files
//   as ReadIdxType    if headers must be read
absl::StatusOr<NodePointer> MakeIdx(std::vector<std::string> paths,
                                    std::vector<std::string> label_paths,
                                    const IdxOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_IDX_H_
