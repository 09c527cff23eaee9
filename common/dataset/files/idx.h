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

// The IDX format: two zero bytes, a byte for the type, a byte for the number of
// dimensions, the extents as big-endian uint32, then big-endian values.

// The values of a file, int8 and int16 widened to int32.
//   kInvalidArgument  it is not IDX, or is longer or shorter than its header
//                     says; names the file, what was expected and what found
//   as InputFile      it cannot be read
absl::StatusOr<Tensor> ReadIdx(absl::string_view path);

// The type of ReadIdx(path), from the header alone.
absl::StatusOr<TensorType> ReadIdxType(absl::string_view path);

// The records of `paths`; with `label_paths`, of which there are as many then,
// {record, label}. All headers are looked at unless `options` say what records
// are.
//   kInvalidArgument  options do not fit each other, or a file has not a label
//                     for each record
//   as CheckFiles()   by the list of files
//   as ReadIdxType    when headers have to be looked at
absl::StatusOr<NodePointer> MakeIdx(std::vector<std::string> paths,
                                    std::vector<std::string> label_paths,
                                    const IdxOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_IDX_H_
