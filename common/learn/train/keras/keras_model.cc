#include "common/learn/train/keras/keras_model.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/keras_archive.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/keras/keras_differences.h"
#include "common/learn/train/keras/keras_legacy_file.h"
#include "common/learn/train/keras/keras_model_reader.h"
#include "common/learn/train/keras/keras_object.h"
#include "common/learn/train/keras/keras_variables.h"
#include "common/learn/train/keras/keras_weights_size.h"

namespace muster {
namespace {

// That of files which do not say their version.
constexpr KerasVersion kArchiveVersion = {3, 0};
constexpr KerasVersion kLegacyVersion = {2, 0};

struct Parts {
  KerasVersion version;
  std::string config;
  std::unique_ptr<Hdf5Reader> weights;
  std::map<std::string, std::string> assets;
};

// Reads the parts of a file of either format.
absl::StatusOr<Parts> ReadParts(Disk* disk, const std::string& path) {
  Parts parts;
  ASSIGN_OR_RETURN(const KerasFileKind kind, FindKerasFileKind(disk, path));
  if (kind == KerasFileKind::kLegacy) {
    ASSIGN_OR_RETURN(std::string bytes, ReadKerasWeights(disk, path));
    ASSIGN_OR_RETURN(parts.weights, Hdf5Reader::Open(path, std::move(bytes)));
    ASSIGN_OR_RETURN(parts.config, LegacyModelJson(*parts.weights));
    parts.version = ParseKerasVersion(LegacyKerasVersion(*parts.weights),
                                      /*otherwise=*/kLegacyVersion);
    return parts;
  }
  ASSIGN_OR_RETURN(KerasArchive archive,
                   ReadKerasArchive(disk, path, KerasWeightsSizeBytesMax));
  ASSIGN_OR_RETURN(
      const KerasJson metadata,
      ParseKerasJson(absl::StrCat(path, ": metadata.json"), archive.metadata));
  parts.version = ParseKerasVersion(TextMember(metadata, "keras_version"),
                                    /*otherwise=*/kArchiveVersion);
  ASSIGN_OR_RETURN(parts.weights,
                   Hdf5Reader::Open(path, std::move(archive.weights)));
  parts.config = std::move(archive.config);
  parts.assets = std::move(archive.assets);
  return parts;
}

}  // namespace

absl::StatusOr<KerasModel> ReadKerasModel(Disk* disk, const std::string& path) {
  ASSIGN_OR_RETURN(Parts parts, ReadParts(disk, path));
  KerasModel model;
  ASSIGN_OR_RETURN(
      model.config,
      ParseKerasJson(absl::StrCat(path, ": the model's config"), parts.config));
  UpdateKerasConfig(parts.version, &model.config);
  absl::StatusOr<LayerPtr> layers = LayersFromKeras(model.config);
  if (!layers.ok()) {
    return absl::Status(layers.status().code(),
                        absl::StrCat(path, ": ", layers.status().message()));
  }
  model.layers = *std::move(layers);
  model.weights = std::move(parts.weights);
  RETURN_IF_ERROR(
      AdoptKerasStates(*model.layers, *model.weights, parts.assets));
  if (model.layers->input_types().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": the model has no input layer, so that its weights have no "
        "shapes; build it in Keras before it is saved"));
  }
  return model;
}

}  // namespace muster
