#include "common/io/keras/hdf5_writer.h"

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/hdf5_library.h"
#include "hdf5.h"

namespace muster {
namespace {

using internal::Hdf5Error;
using internal::Hdf5Id;
using internal::Hdf5Lock;

absl::Status Failure(absl::string_view path) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot add ", path, " to an HDF5 file: ", Hdf5Error()));
}

class LibraryWriter : public Hdf5Writer {
 public:
  explicit LibraryWriter(Hdf5Id file) : file_(std::move(file)) {}
  ~LibraryWriter() override {
    const Hdf5Lock lock;
    file_.Reset();
  }

  absl::Status AddGroup(absl::string_view path) override {
    const Hdf5Lock lock;
    return MakeGroups(path);
  }
  absl::Status AddAttribute(absl::string_view group, absl::string_view name,
                            absl::string_view value) override;
  absl::Status Add(absl::string_view path, const Tensor& tensor) override;
  absl::StatusOr<std::string> Finish() override;

 private:
  bool Exists(const std::string& path) const {
    return H5Lexists(file_.get(), path.c_str(), H5P_DEFAULT) > 0;
  }
  absl::Status MakeGroups(absl::string_view path);

  Hdf5Id file_;
};

absl::Status LibraryWriter::MakeGroups(absl::string_view path) {
  // Times would make the bytes differ from run to run.
  const Hdf5Id creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.get(), false);
  for (size_t end = 0; end < path.size(); ++end) {
    end = std::min(path.find('/', end), path.size());
    const std::string group(path.substr(0, end));
    if (Exists(group)) continue;
    const Hdf5Id made(H5Gcreate2(file_.get(), group.c_str(), H5P_DEFAULT,
                                 creation.get(), H5P_DEFAULT),
                      H5Gclose);
    if (!made.ok()) return Failure(group);
  }
  return absl::OkStatus();
}

absl::Status LibraryWriter::AddAttribute(absl::string_view group,
                                         absl::string_view name,
                                         absl::string_view value) {
  const Hdf5Lock lock;
  const Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const Hdf5Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Id attribute(
      H5Acreate_by_name(file_.get(), std::string(group).c_str(),
                        std::string(name).c_str(), type.get(), space.get(),
                        H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  const std::string text(value);
  const char* const characters = text.c_str();
  if (!attribute.ok() ||
      H5Awrite(attribute.get(), type.get(), &characters) < 0) {
    return Failure(absl::StrCat(group, "@", name));
  }
  return absl::OkStatus();
}

absl::Status LibraryWriter::Add(absl::string_view path, const Tensor& tensor) {
  const Hdf5Lock lock;
  const std::string name(path);
  const hid_t type = internal::NativeHdf5Type(tensor.dtype());
  if (type < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": ", tensor.type().ToString(), " has no form in HDF5"));
  }
  if (const size_t slash = path.rfind('/'); slash != absl::string_view::npos) {
    RETURN_IF_ERROR(MakeGroups(path.substr(0, slash)));
  }
  if (Exists(name)) {
    return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
  }
  const auto dims = tensor.shape().dims();
  const std::vector<hsize_t> extents(dims.begin(), dims.end());
  const Hdf5Id space(extents.empty()
                         ? H5Screate(H5S_SCALAR)
                         : H5Screate_simple(static_cast<int>(extents.size()),
                                            extents.data(), nullptr),
                     H5Sclose);
  const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.get(), false);
  const Hdf5Id dataset(H5Dcreate2(file_.get(), name.c_str(), type, space.get(),
                                  H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                       H5Dclose);
  if (!dataset.ok()) return Failure(name);
  if (tensor.element_count() == 0) return absl::OkStatus();
  if (H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT,
               tensor.raw_data()) < 0) {
    return Failure(name);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> LibraryWriter::Finish() {
  const Hdf5Lock lock;
  if (H5Fflush(file_.get(), H5F_SCOPE_LOCAL) < 0) return Failure("all");
  const ssize_t size = H5Fget_file_image(file_.get(), nullptr, 0);
  if (size < 0) return Failure("all");
  std::string bytes(size, '\0');
  if (H5Fget_file_image(file_.get(), bytes.data(), bytes.size()) != size) {
    return Failure("all");
  }
  file_.Reset();
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Hdf5Writer>> Hdf5Writer::Create() {
  const Hdf5Lock lock;
  const Hdf5Id access = internal::InMemoryAccess();
  const Hdf5Id creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.get(), false);
  Hdf5Id file(H5Fcreate(internal::NextInMemoryName().c_str(), H5F_ACC_TRUNC,
                        creation.get(), access.get()),
              H5Fclose);
  if (!file.ok()) return Failure("the root");
  return std::make_unique<LibraryWriter>(std::move(file));
}

}  // namespace muster
