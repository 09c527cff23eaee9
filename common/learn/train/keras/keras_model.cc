#include "common/learn/train/keras/keras_model.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/keras_archive.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/keras/keras_legacy_file.h"
#include "common/learn/train/keras/keras_model_reader.h"
#include "common/learn/train/keras/keras_object.h"
#include "common/learn/train/keras/keras_variables.h"

namespace muster {

namespace {

// The parts of a file of either format.
absl::StatusOr<KerasArchive> ReadParts(Disk* disk, const std::string& path) {
  if (KerasFileKindOf(path) != KerasFileKind::kLegacy) {
    return ReadKerasArchive(disk, path);
  }
  KerasArchive parts;
  ASSIGN_OR_RETURN(parts.weights, ReadKerasWeights(disk, path));
  ASSIGN_OR_RETURN(const std::unique_ptr<Hdf5Reader> file,
                   Hdf5Reader::Open(path, parts.weights));
  ASSIGN_OR_RETURN(parts.config, LegacyModelJson(*file));
  return parts;
}

}  // namespace

absl::StatusOr<KerasModel> ReadKerasModel(Disk* disk, const std::string& path) {
  ASSIGN_OR_RETURN(const KerasArchive archive, ReadParts(disk, path));
  KerasModel model;
  model.config =
      KerasJson::parse(archive.config, nullptr, /*allow_exceptions=*/false);
  if (model.config.is_discarded()) {
    return absl::DataLossError(
        absl::StrCat(path, ": the model's config is no JSON"));
  }
  absl::StatusOr<LayerPtr> layers = LayersFromKeras(model.config);
  if (!layers.ok()) {
    return absl::Status(layers.status().code(),
                        absl::StrCat(path, ": ", layers.status().message()));
  }
  model.layers = *std::move(layers);
  ASSIGN_OR_RETURN(model.weights, Hdf5Reader::Open(path, archive.weights));
  RETURN_IF_ERROR(
      AdoptKerasStates(*model.layers, *model.weights, archive.assets));
  if (model.layers->input_types().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": the model has no input layer, so that its weights have no "
        "shapes; build it in Keras before it is saved"));
  }
  return model;
}

}  // namespace muster
