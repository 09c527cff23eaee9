#include "common/learn/train/keras/keras_model.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/keras_archive.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/checkpoints/training_checkpoint.h"
#include "common/learn/train/keras/keras_compile_config.h"
#include "common/learn/train/keras/keras_differences.h"
#include "common/learn/train/keras/keras_legacy_file.h"
#include "common/learn/train/keras/keras_model_json.h"
#include "common/learn/train/keras/keras_model_reader.h"
#include "common/learn/train/keras/keras_object.h"
#include "common/learn/train/keras/keras_variables.h"
#include "common/learn/train/keras/keras_weights.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

// The types of inputs of any batch size.
std::vector<TensorType> OfAnyBatch(std::vector<TensorType> types) {
  for (TensorType& type : types) {
    if (type.shape.rank() == 0) continue;
    std::vector<int64_t> dims(type.shape.dims().begin(),
                              type.shape.dims().end());
    dims.front() = Shape::kUnknown;
    type.shape = Shape(dims);
  }
  return types;
}

absl::StatusOr<std::string> WeightsFrom(Disk* disk, const std::string& path,
                                        const Layer& layers,
                                        const proto::Optimizer* optimizer,
                                        const std::string& loss_scale,
                                        TrainingSnapshot* snapshot) {
  const IntermediateCheckpoint checkpoint(disk, path);
  RETURN_IF_ERROR(snapshot->WriteTo(disk, checkpoint.prefix()));
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleReader> reader,
                   TensorBundleReader::Open(disk, checkpoint.prefix()));
  return KerasWeightsOf(*reader, layers, optimizer, loss_scale);
}

}  // namespace

IntermediateCheckpoint::IntermediateCheckpoint(Disk* disk,
                                               absl::string_view path)
    : disk_(disk), prefix_(absl::StrCat(path, ".converting")) {}

IntermediateCheckpoint::~IntermediateCheckpoint() {
  const std::string folder(FolderOf(prefix_));
  const absl::StatusOr<std::vector<std::string>> names = disk_->List(folder);
  if (!names.ok()) return;
  const std::string start = absl::StrCat(BaseName(prefix_), ".");
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, start)) continue;
    const absl::Status removed = disk_->Remove(JoinPath(folder, name));
    if (!removed.ok() && !absl::IsNotFound(removed)) LOG(WARNING) << removed;
  }
}

absl::Status WriteKerasModel(Disk* disk, const std::string& path,
                             const KerasModelParts& parts,
                             TrainingSnapshot* snapshot) {
  std::optional<KerasJson> config =
      KerasModelConfig(parts.layers, OfAnyBatch(parts.inputs));
  if (!config.has_value()) {
    return absl::UnimplementedError(absl::StrCat(
        path,
        ": files of Keras are for Sequential and functional models; this "
        "is a ",
        parts.layers.kind(), ". SaveCheckpoint() saves any model"));
  }
  const proto::Optimizer& optimizer = parts.options.optimizer.message();
  const bool has_one_optimizer = parts.options.layer_optimizers.empty();
  const bool has_optimizer =
      parts.options.optimizer.has_rule() && has_one_optimizer;
  if (!has_one_optimizer) {
    LOG(WARNING) << path << " has neither compile settings nor optimizer "
                 << "state: the model has layer_optimizers, and Keras has one "
                 << "optimizer for all layers. SaveCheckpoint() saves all of "
                 << "them";
  }
  if (has_optimizer) {
    absl::StatusOr<KerasJson> compiled =
        KerasCompileConfig(parts.options, OutputStructureOf(parts.layers));
    if (compiled.ok()) {
      (*config)["compile_config"] = *std::move(compiled);
    } else {
      LOG(WARNING) << path << " has no compile settings: "
                   << compiled.status().message();
    }
  }
  KerasArchive archive{.config = config->dump()};
  ASSIGN_OR_RETURN(archive.weights,
                   WeightsFrom(disk, path, parts.layers,
                               has_optimizer ? &optimizer : nullptr,
                               parts.loss_scale, snapshot));
  return WriteKerasArchive(disk, path, archive, absl::Now());
}

absl::Status WriteKerasWeights(Disk* disk, const std::string& path,
                               const Layer& layers,
                               TrainingSnapshot* snapshot) {
  ASSIGN_OR_RETURN(const std::string bytes,
                   WeightsFrom(disk, path, layers, nullptr, "", snapshot));
  return ReplaceFile(disk, path, bytes);
}

absl::StatusOr<std::unique_ptr<Hdf5Reader>> OpenKerasWeights(
    Disk* disk, const std::string& path) {
  ASSIGN_OR_RETURN(const KerasFileKind kind, FindKerasFileKind(disk, path));
  if (kind == KerasFileKind::kArchive) {
    ASSIGN_OR_RETURN(KerasArchive archive,
                     ReadKerasArchive(disk, path, KerasWeightsSizeBytesMax));
    return Hdf5Reader::Open(path, std::move(archive.weights));
  }
  ASSIGN_OR_RETURN(std::string bytes, ReadKerasWeights(disk, path));
  return Hdf5Reader::Open(path, std::move(bytes));
}

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
