#ifndef COMMON_IO_KERAS_HDF5_LIBRARY_H_
#define COMMON_IO_KERAS_HDF5_LIBRARY_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "common/core/tensor/dtype.h"
#include "hdf5.h"

namespace muster::internal {

// Owns an identifier of the HDF5 library and closes it.
class Hdf5Id {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Id() = default;
  // A negative `id` stands for an error of the library and is not closed.
  Hdf5Id(hid_t id, Close close) : id_(id), close_(close) {}
  ~Hdf5Id() { Reset(); }
  Hdf5Id(Hdf5Id&& other) noexcept : id_(other.id_), close_(other.close_) {
    other.id_ = H5I_INVALID_HID;
  }
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }

  bool ok() const { return id_ >= 0; }
  hid_t get() const { return id_; }
  void Reset() {
    if (ok()) close_(id_);
    id_ = H5I_INVALID_HID;
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// Serializes all calls of the library, which is not thread-safe, and keeps it
// from printing its errors and from loading filters as plugins.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  absl::MutexLock lock_;
};

// Returns the library's description of the error of the last call.
std::string Hdf5Error();

// Returns the access properties of a file that is written in memory. Call with
// Hdf5Lock held.
Hdf5Id InMemoryAccess();

// The bytes of a file that is only read. The library reads them in place.
class Hdf5Image {
 public:
  explicit Hdf5Image(std::string bytes) : bytes_(std::move(bytes)) {}
  Hdf5Image(const Hdf5Image&) = delete;
  Hdf5Image& operator=(const Hdf5Image&) = delete;

  size_t size_bytes() const { return bytes_.size(); }

  // Returns the access properties of a file of these bytes, or an identifier
  // that is not ok(). The image must outlive the file. Call with Hdf5Lock held.
  Hdf5Id Access();

 private:
  std::string bytes_;
};

// Returns a name that no other file in memory has. The library treats open
// files of the same name as one file. Call with Hdf5Lock held.
std::string NextInMemoryName();

// Returns the library's type for the elements of a tensor in memory; negative
// for types that files of Keras do not have.
hid_t NativeHdf5Type(DType dtype);

}  // namespace muster::internal

#endif  // COMMON_IO_KERAS_HDF5_LIBRARY_H_
