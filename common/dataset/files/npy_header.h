#ifndef COMMON_DATASET_FILES_NPY_HEADER_H_
#define COMMON_DATASET_FILES_NPY_HEADER_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

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

}  // namespace muster

#endif  // COMMON_DATASET_FILES_NPY_HEADER_H_
