#ifndef COMMON_DATASET_FILES_NPY_H_
#define COMMON_DATASET_FILES_NPY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/record_files.h"

namespace muster {

// NumPy's .npy format: "\x93NUMPY", the version (two bytes), the length of the
// header (uint16, from version 2 uint32, little-endian), the header, which is a
// Python dict of descr, fortran_order and shape, then the values. Source:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

// Reads the array in a file, plain or gzip, in row-major order.
//   kInvalidArgument  as NpyDataset()
//   as InputFile
absl::StatusOr<Tensor> ReadNpy(absl::string_view path);

// Returns the type of ReadNpy(path), reading only the header.
absl::StatusOr<TensorType> ReadNpyType(absl::string_view path);

// Returns the bytes of a file with a tensor of numbers, in version 1.
//   kInvalidArgument  strings, or bfloat16, which NumPy does not have
absl::StatusOr<std::string> NpyFileOf(const Tensor& tensor);

// As NpyDataset(), for these files.
//   as CheckFiles()
absl::StatusOr<NodePointer> MakeNpy(std::vector<std::string> paths,
                                    const NpyOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_NPY_H_
