#ifndef COMMON_DATASET_FILES_NPY_H_
#define COMMON_DATASET_FILES_NPY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/record_files.h"

namespace muster {

// The content of a .npy file's header.
struct NpyHeader {
  char kind = 0;           // 'f', 'i', 'u', 'b', 'S' or 'U', as NumPy has it.
  size_t value_bytes = 0;  // Of one value in the file.
  bool is_big_endian = false;
  bool is_column_major = false;
  Shape shape;
  DType dtype = DType::kInvalid;  // The dtype of the resulting tensor.
};

// Parses the Python dict after the length. Source: numpy.lib.format.
//   kInvalidArgument  it is not a dict, lacks a key, or the values are of a
//                     kind that is not supported
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text);

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
