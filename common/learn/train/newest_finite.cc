#include "common/learn/train/newest_finite.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/check_numerics.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/keras_archive.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/keras/keras_model.h"

namespace muster {
namespace {

absl::Status CheckBundle(const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleReader> reader,
                   TensorBundleReader::Open(Disk::Real(), prefix));
  for (const StoredTensor& stored : reader->tensors()) {
    if (!IsFloating(stored.dtype)) continue;
    ASSIGN_OR_RETURN(const Tensor tensor, reader->Read(stored.name));
    RETURN_IF_ERROR(CheckFinite(tensor));
  }
  return absl::OkStatus();
}

absl::Status CheckArrays(const Hdf5Reader& reader, const std::string& group) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, reader.List(group));
  for (const std::string& name : names) {
    const std::string path =
        group.empty() ? name : absl::StrCat(group, "/", name);
    if (reader.List(path).ok()) {
      RETURN_IF_ERROR(CheckArrays(reader, path));
      continue;
    }
    ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(path));
    RETURN_IF_ERROR(CheckFinite(tensor));
  }
  return absl::OkStatus();
}

absl::Status CheckFile(const std::string& path) {
  if (KerasFileKindOf(path) == KerasFileKind::kNone) return CheckBundle(path);
  ASSIGN_OR_RETURN(const std::unique_ptr<Hdf5Reader> reader,
                   OpenKerasWeights(Disk::Real(), path));
  return CheckArrays(*reader, "");
}

}  // namespace

std::string DescribeNewestFinite(const std::vector<Callback*>& callbacks) {
  int count = 0;
  for (auto it = callbacks.rbegin(); it != callbacks.rend(); ++it) {
    for (const std::string& path : (*it)->saved()) {
      ++count;
      if (!CheckFile(path).ok()) continue;
      return absl::StrCat("The newest checkpoint with finite numbers only is ",
                          path);
    }
  }
  if (count == 0) return "No checkpoint has been saved";
  return absl::StrCat("None of the ", count,
                      " checkpoints that were saved has finite numbers only");
}

}  // namespace muster
