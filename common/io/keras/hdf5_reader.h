#ifndef COMMON_IO_KERAS_HDF5_READER_H_
#define COMMON_IO_KERAS_HDF5_READER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Reads the arrays of an HDF5 file that is in memory.
//
// The file is not trusted. Only arrays inside it are read: soft and external
// links, external and virtual storage, and arrays that declare far more data
// than the file holds are refused, and no filter is loaded as a plugin. The
// format itself is parsed by libhdf5.
//
// Paths are relative to the root: "layers/dense/vars/0". Errors begin with the
// name of the file and the path inside it:
//   kDataLoss       the file is damaged
//   kUnimplemented  an array of a type that Muster does not have (bfloat16,
//                   text), or stored as described above
//
// Thread-safe. Calls of all readers and writers of a process exclude each
// other, because libhdf5 is not thread-safe.
//
// Source: HDF5 File Format Specification 2.0, The HDF Group.
class Hdf5Reader {
 public:
  // `name` stands for the file in errors.
  static absl::StatusOr<std::unique_ptr<Hdf5Reader>> Open(
      absl::string_view name, std::string bytes);

  virtual ~Hdf5Reader() = default;

  // The name of the file in errors.
  virtual const std::string& name() const = 0;

  // Returns the names in a group, in ascending order.
  //   kNotFound  there is no such group
  virtual absl::StatusOr<std::vector<std::string>> List(
      absl::string_view group) const = 0;

  // Returns true if there is a group or an array at the path.
  virtual bool Contains(absl::string_view path) const = 0;

  // Reads an array: float16, float32, float64, int32, int64 or uint8, of either
  // byte order.
  //   kNotFound  there is no such array
  virtual absl::StatusOr<Tensor> Read(absl::string_view path) const = 0;

  // Returns true if a group has an attribute. "" is the root.
  virtual bool HasAttribute(absl::string_view group,
                            absl::string_view attribute) const = 0;

  // Reads an attribute of a group: one text, or a list of them. "" is the root.
  // An attribute without elements is an empty list, whatever its type.
  //   kNotFound  there is no such group or attribute
  virtual absl::StatusOr<std::vector<std::string>> ReadTexts(
      absl::string_view group, absl::string_view attribute) const = 0;

 protected:
  Hdf5Reader() = default;
};

}  // namespace muster

#endif  // COMMON_IO_KERAS_HDF5_READER_H_
