#include "common/io/keras/hdf5_library.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/tensor/dtype.h"
#include "hdf5.h"

namespace muster::internal {
namespace {

// Increment by which the memory of a file grows.
constexpr size_t kIncrementBytes = 1 << 20;

absl::Mutex& LibraryMutex() {
  static auto& kMutex = *new absl::Mutex();
  return kMutex;
}

herr_t KeepFirst(unsigned, const H5E_error2_t* error, void* text) {
  auto& kept = *static_cast<std::string*>(text);
  if (kept.empty() && error->desc != nullptr) kept = error->desc;
  return 0;
}

// IEEE 754 half precision, which the library has no name for.
hid_t Float16Type() {
  static const hid_t kType = [] {
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    return type;
  }();
  return kType;
}

// The library allocates, copies and frees images through these functions. They
// return the existing bytes, so that a large file is in memory only once.
void* GetImage(size_t, H5FD_file_image_op_t, void* image) { return image; }
void* KeepImage(void* destination, const void*, size_t, H5FD_file_image_op_t,
                void*) {
  return destination;
}
// Files that are only read do not grow.
void* RefuseImage(void*, size_t, H5FD_file_image_op_t, void*) {
  return nullptr;
}
herr_t LeaveImage(void*, H5FD_file_image_op_t, void*) { return 0; }
void* ShareImage(void* image) { return image; }
herr_t LeaveSharedImage(void*) { return 0; }

}  // namespace

Hdf5Lock::Hdf5Lock() : lock_(&LibraryMutex()) {
  static const bool kIsSetUp = [] {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5PLset_loading_state(0);
    return true;
  }();
  static_cast<void>(kIsSetUp);
}

std::string Hdf5Error() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, KeepFirst, &text);
  return text.empty() ? "unknown error" : text;
}

Hdf5Id InMemoryAccess() {
  Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), kIncrementBytes, /*backing_store=*/0);
  return access;
}

Hdf5Id Hdf5Image::Access() {
  Hdf5Id access = InMemoryAccess();
  H5FD_file_image_callbacks_t callbacks = {
      .image_malloc = GetImage,
      .image_memcpy = KeepImage,
      .image_realloc = RefuseImage,
      .image_free = LeaveImage,
      .udata_copy = ShareImage,
      .udata_free = LeaveSharedImage,
      .udata = bytes_.data(),
  };
  if (H5Pset_file_image_callbacks(access.get(), &callbacks) < 0 ||
      H5Pset_file_image(access.get(), bytes_.data(), bytes_.size()) < 0) {
    return Hdf5Id();
  }
  return access;
}

std::string NextInMemoryName() {
  static int64_t last_number = 0;
  return absl::StrCat("memory-", ++last_number);
}

hid_t NativeHdf5Type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return H5T_NATIVE_FLOAT;
    case DType::kFloat64:
      return H5T_NATIVE_DOUBLE;
    case DType::kFloat16:
      return Float16Type();
    case DType::kInt32:
      return H5T_NATIVE_INT32;
    case DType::kInt64:
      return H5T_NATIVE_INT64;
    case DType::kUint8:
      return H5T_NATIVE_UINT8;
    case DType::kBool:
    case DType::kBfloat16:
    case DType::kString:
    case DType::kInvalid:
      break;
  }
  return H5I_INVALID_HID;
}

}  // namespace muster::internal
