#include "common/io/keras/hdf5_reader.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/deflate_expansion.h"
#include "common/io/keras/hdf5_library.h"
#include "hdf5.h"

namespace muster {
namespace {

using internal::Hdf5Error;
using internal::Hdf5Id;
using internal::Hdf5Image;
using internal::Hdf5Lock;

constexpr int kRankMax = 32;  // As H5S_MAX_RANK.
// Maximum number of names in one group: a model's layers, or its optimizer's
// arrays.
constexpr size_t kNameCountMax = 1 << 20;
// Maximum size of the texts of one attribute. A model's config is one.
constexpr size_t kTextBytesMax = size_t{64} << 20;

std::optional<DType> DTypeOfHdf5(hid_t type) {
  const size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      if (size == 4) return DType::kFloat32;
      if (size == 8) return DType::kFloat64;
      // The exponent bias distinguishes float16 from bfloat16.
      if (size == 2 && H5Tget_ebias(type) == 15) return DType::kFloat16;
      return std::nullopt;
    case H5T_INTEGER: {
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      if (size == 8 && is_signed) return DType::kInt64;
      if (size == 4 && is_signed) return DType::kInt32;
      if (size == 1 && !is_signed) return DType::kUint8;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

herr_t KeepName(hid_t, const char* name, const H5L_info_t*, void* names) {
  auto& kept = *static_cast<std::vector<std::string>*>(names);
  if (kept.size() == kNameCountMax) return 1;
  kept.emplace_back(name);
  return 0;
}

class LibraryHdf5Reader : public Hdf5Reader {
 public:
  LibraryHdf5Reader(absl::string_view name, std::unique_ptr<Hdf5Image> image,
                    Hdf5Id file)
      : name_(name), image_(std::move(image)), file_(std::move(file)) {}
  ~LibraryHdf5Reader() override {
    const Hdf5Lock lock;
    file_.Reset();
  }

  const std::string& name() const override { return name_; }
  absl::StatusOr<std::vector<std::string>> List(
      absl::string_view group) const override;
  bool Contains(absl::string_view path) const override {
    const Hdf5Lock lock;
    return Open(path).ok();
  }
  absl::StatusOr<Tensor> Read(absl::string_view path) const override;
  bool HasAttribute(absl::string_view group,
                    absl::string_view attribute) const override {
    const Hdf5Lock lock;
    const absl::StatusOr<Hdf5Id> object = Open(group);
    return object.ok() &&
           H5Aexists(object->get(), std::string(attribute).c_str()) > 0;
  }
  absl::StatusOr<std::vector<std::string>> ReadTexts(
      absl::string_view group, absl::string_view attribute) const override;

 private:
  std::string Place(absl::string_view path) const {
    return absl::StrCat(name_, ": ", path, ": ");
  }
  absl::Status Damage(absl::string_view path) const {
    return absl::DataLossError(
        absl::StrCat(Place(path), "cannot be read: ", Hdf5Error()));
  }
  // Follows hard links only. "" is the root.
  absl::StatusOr<Hdf5Id> Open(absl::string_view path) const;
  absl::StatusOr<Shape> ShapeOf(hid_t dataset, absl::string_view path) const;
  absl::Status CheckStorage(hid_t dataset, const TensorType& type,
                            absl::string_view path) const;

  const std::string name_;
  const std::unique_ptr<const Hdf5Image> image_;
  Hdf5Id file_;
};

absl::StatusOr<Hdf5Id> LibraryHdf5Reader::Open(absl::string_view path) const {
  if (path.empty()) {
    Hdf5Id root(H5Oopen(file_.get(), "/", H5P_DEFAULT), H5Oclose);
    if (!root.ok()) return Damage("/");
    return root;
  }
  std::string reached;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (!reached.empty()) reached += '/';
    absl::StrAppend(&reached, std::string(part));
    H5L_info_t link;
    if (part.empty() || part == "." ||
        H5Lexists(file_.get(), reached.c_str(), H5P_DEFAULT) <= 0) {
      return absl::NotFoundError(
          absl::StrCat(name_, " has no ", path, "; it ends at ", reached));
    }
    if (H5Lget_info(file_.get(), reached.c_str(), &link, H5P_DEFAULT) < 0) {
      return Damage(reached);
    }
    if (link.type != H5L_TYPE_HARD) {
      return absl::UnimplementedError(
          absl::StrCat(Place(reached),
                       "is a link to another place or file, which is not "
                       "followed; copy what it refers to into the file"));
    }
  }
  Hdf5Id object(H5Oopen(file_.get(), reached.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object.ok()) return Damage(path);
  return object;
}

absl::StatusOr<std::vector<std::string>> LibraryHdf5Reader::List(
    absl::string_view group) const {
  const Hdf5Lock lock;
  ASSIGN_OR_RETURN(const Hdf5Id object, Open(group));
  if (H5Iget_type(object.get()) != H5I_GROUP) {
    return absl::NotFoundError(absl::StrCat(Place(group), "is not a group"));
  }
  std::vector<std::string> names;
  hsize_t index = 0;
  const herr_t status = H5Literate(object.get(), H5_INDEX_NAME, H5_ITER_INC,
                                   &index, KeepName, &names);
  if (status < 0) return Damage(group);
  if (status > 0) {
    return absl::DataLossError(
        absl::StrCat(Place(group), "has more than ", kNameCountMax, " names"));
  }
  return names;
}

absl::StatusOr<Shape> LibraryHdf5Reader::ShapeOf(hid_t dataset,
                                                 absl::string_view path) const {
  const Hdf5Id space(H5Dget_space(dataset), H5Sclose);
  if (!space.ok()) return Damage(path);
  const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
  if (kind == H5S_SCALAR) return Shape();
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (kind != H5S_SIMPLE || rank < 1 || rank > kRankMax) {
    return absl::UnimplementedError(absl::StrCat(Place(path), "has no shape"));
  }
  std::vector<hsize_t> extents(rank);
  if (H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr) < 0) {
    return Damage(path);
  }
  std::vector<int64_t> dims;
  // 2^40 elements at 8 bytes do not overflow.
  uint64_t element_count = 1;
  constexpr uint64_t kElementCountMax = uint64_t{1} << 40;
  for (const hsize_t extent : extents) {
    if (extent != 0 && element_count > kElementCountMax / extent) {
      return absl::DataLossError(absl::StrCat(
          Place(path), "declares more than ", kElementCountMax, " elements"));
    }
    element_count *= extent;
    dims.push_back(static_cast<int64_t>(extent));
  }
  return Shape(dims);
}

absl::Status LibraryHdf5Reader::CheckStorage(hid_t dataset,
                                             const TensorType& type,
                                             absl::string_view path) const {
  const Hdf5Id creation(H5Dget_create_plist(dataset), H5Pclose);
  if (!creation.ok()) return Damage(path);
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL ||
      H5Pget_external_count(creation.get()) != 0) {
    return absl::UnimplementedError(absl::StrCat(
        Place(path), "is stored in another file, which is not read"));
  }
  const uint64_t declared = type.shape.element_count() * SizeOf(type.dtype);
  const uint64_t stored = H5Dget_storage_size(dataset);
  if (declared / kDeflateExpansionMax <= stored &&
      (stored > 0 || declared == 0)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(Place(path), "declares ", type.ToString(), ", ", declared,
                   " bytes, but the file holds ", stored, " bytes of it"));
}

absl::StatusOr<Tensor> LibraryHdf5Reader::Read(absl::string_view path) const {
  const Hdf5Lock lock;
  ASSIGN_OR_RETURN(const Hdf5Id dataset, Open(path));
  if (H5Iget_type(dataset.get()) != H5I_DATASET) {
    return absl::NotFoundError(absl::StrCat(Place(path), "is not an array"));
  }
  const Hdf5Id stored_type(H5Dget_type(dataset.get()), H5Tclose);
  if (!stored_type.ok()) return Damage(path);
  const std::optional<DType> dtype = DTypeOfHdf5(stored_type.get());
  if (!dtype.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat(Place(path),
                     "has elements of another type than float16, float32, "
                     "float64, int32, int64 and uint8"));
  }
  ASSIGN_OR_RETURN(Shape shape, ShapeOf(dataset.get(), path));
  const TensorType type{*dtype, std::move(shape)};
  RETURN_IF_ERROR(CheckStorage(dataset.get(), type, path));
  Tensor tensor(type.dtype, type.shape);
  if (tensor.element_count() == 0) return tensor;
  if (H5Dread(dataset.get(), internal::NativeHdf5Type(*dtype), H5S_ALL, H5S_ALL,
              H5P_DEFAULT, tensor.mutable_raw_data()) < 0) {
    return Damage(path);
  }
  return tensor;
}

// Reads the texts of an attribute whose elements have a fixed size. Returns
// false if they cannot be read.
bool ReadFixedTexts(hid_t attribute, hid_t type, size_t count,
                    std::vector<std::string>* texts) {
  const size_t size = H5Tget_size(type);
  if (size == 0 || size > kTextBytesMax / count) return false;
  std::string bytes(size * count, '\0');
  if (H5Aread(attribute, type, bytes.data()) < 0) return false;
  for (size_t i = 0; i < count; ++i) {
    const char* const start = bytes.data() + i * size;
    texts->emplace_back(start, strnlen(start, size));
  }
  return true;
}

// As ReadFixedTexts(), for elements that the library allocates.
bool ReadVariableTexts(hid_t attribute, hid_t type, hid_t space, size_t count,
                       std::vector<std::string>* texts) {
  const Hdf5Id in_memory(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(in_memory.get(), H5T_VARIABLE);
  H5Tset_cset(in_memory.get(), H5Tget_cset(type));
  std::vector<char*> allocated(count, nullptr);
  if (H5Aread(attribute, in_memory.get(), allocated.data()) < 0) return false;
  for (const char* const text : allocated) {
    texts->emplace_back(text == nullptr ? "" : text);
  }
  H5Dvlen_reclaim(in_memory.get(), space, H5P_DEFAULT, allocated.data());
  return true;
}

absl::StatusOr<std::vector<std::string>> LibraryHdf5Reader::ReadTexts(
    absl::string_view group, absl::string_view attribute) const {
  const Hdf5Lock lock;
  ASSIGN_OR_RETURN(const Hdf5Id object, Open(group));
  const std::string name(attribute);
  const std::string path = absl::StrCat(group, " (attribute ", name, ")");
  if (H5Aexists(object.get(), name.c_str()) <= 0) {
    return absl::NotFoundError(absl::StrCat(name_, " has no ", path));
  }
  const Hdf5Id stored(H5Aopen(object.get(), name.c_str(), H5P_DEFAULT),
                      H5Aclose);
  const Hdf5Id type(H5Aget_type(stored.get()), H5Tclose);
  const Hdf5Id space(H5Aget_space(stored.get()), H5Sclose);
  if (!stored.ok() || !type.ok() || !space.ok()) return Damage(path);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count < 0) return Damage(path);
  std::vector<std::string> texts;
  if (count == 0) return texts;
  if (H5Tget_class(type.get()) != H5T_STRING ||
      count > static_cast<hssize_t>(kNameCountMax)) {
    return absl::UnimplementedError(absl::StrCat(
        Place(path), "is not a list of at most ", kNameCountMax, " strings"));
  }
  const bool is_read =
      H5Tis_variable_str(type.get()) > 0
          ? ReadVariableTexts(stored.get(), type.get(), space.get(), count,
                              &texts)
          : ReadFixedTexts(stored.get(), type.get(), count, &texts);
  if (!is_read) return Damage(path);
  return texts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Hdf5Reader>> Hdf5Reader::Open(
    absl::string_view name, std::string bytes) {
  auto image = std::make_unique<Hdf5Image>(std::move(bytes));
  const Hdf5Lock lock;
  const Hdf5Id access = image->Access();
  // The library refuses an image without bytes.
  if (!access.ok()) {
    return absl::DataLossError(absl::StrCat(
        name, " is not an HDF5 file: it has ", image->size_bytes(), " bytes"));
  }
  Hdf5Id file(H5Fopen(internal::NextInMemoryName().c_str(), H5F_ACC_RDONLY,
                      access.get()),
              H5Fclose);
  if (!file.ok()) {
    return absl::DataLossError(
        absl::StrCat(name, " is not an HDF5 file: ", Hdf5Error()));
  }
  return std::make_unique<LibraryHdf5Reader>(name, std::move(image),
                                             std::move(file));
}

}  // namespace muster
