#ifndef COMMON_IO_KERAS_HDF5_WRITER_H_
#define COMMON_IO_KERAS_HDF5_WRITER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Writes an HDF5 file in memory. The same calls give the same bytes.
//
// Errors of all functions:
//   kResourceExhausted  out of memory
//
// Not thread-safe. Calls of all readers and writers of a process exclude each
// other, because libhdf5 is not thread-safe.
class Hdf5Writer {
 public:
  static absl::StatusOr<std::unique_ptr<Hdf5Writer>> Create();

  virtual ~Hdf5Writer() = default;

  // Adds a group, and those above it that are missing. A group that exists
  // stays as it is.
  virtual absl::Status AddGroup(absl::string_view path) = 0;

  // Adds a text attribute to a group that exists.
  virtual absl::Status AddAttribute(absl::string_view group,
                                    absl::string_view name,
                                    absl::string_view value) = 0;

  // Adds an array, and the groups above it that are missing.
  //   kAlreadyExists    there is a group or an array at the path
  //   kInvalidArgument  the array is of bool, bfloat16 or text
  virtual absl::Status Add(absl::string_view path, const Tensor& tensor) = 0;

  // Returns the bytes of the file. Nothing can be added afterwards.
  virtual absl::StatusOr<std::string> Finish() = 0;

 protected:
  Hdf5Writer() = default;
};

}  // namespace muster

#endif  // COMMON_IO_KERAS_HDF5_WRITER_H_
