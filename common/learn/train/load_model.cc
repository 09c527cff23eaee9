#include "common/learn/train/load_model.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/disk.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/keras_archive.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/fit_options.h"
#include "common/learn/train/keras/keras_compile_config.h"
#include "common/learn/train/keras/keras_model_reader.h"
#include "common/learn/train/keras/keras_object.h"
#include "common/learn/train/keras/keras_variables.h"
#include "common/learn/train/keras/keras_weights.h"
#include "common/learn/train/model.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

template <typename T>
absl::StatusOr<T> In(const std::string& path, absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return absl::Status(result.status().code(),
                      absl::StrCat(path, ": ", result.status().message()));
}

absl::StatusOr<Model> Load(Strategy* strategy, const std::string& path,
                           const LoadModelOptions& options) {
  ASSIGN_OR_RETURN(const KerasArchive archive,
                   ReadKerasArchive(Disk::Real(), path));
  const KerasJson json =
      KerasJson::parse(archive.config, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::DataLossError(absl::StrCat(path, ": config.json is no JSON"));
  }
  ASSIGN_OR_RETURN(const LayerPtr layers, In(path, LayersFromKeras(json)));
  ASSIGN_OR_RETURN(const std::unique_ptr<Hdf5Reader> weights,
                   Hdf5Reader::Open(path, archive.weights));
  RETURN_IF_ERROR(AdoptKerasStatistics(*layers, *weights));
  Model model(layers);
  if (layers->input_types().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": the model has no input layer, so that its weights have no "
        "shapes; build it in Keras before it is saved"));
  }
  std::optional<CompileOptions> compiled;
  if (options.compile) {
    ASSIGN_OR_RETURN(compiled,
                     In(path, CompileOptionsFromKeras(json, *layers)));
  }
  const bool continues_training =
      compiled.has_value() && HasOptimizerState(*weights) &&
      compiled->optimizer.rule_case() != proto::Optimizer::RULE_NOT_SET;
  CompileOptions compile_options = compiled.value_or(CompileOptions());
  RETURN_IF_ERROR(strategy == nullptr
                      ? model.Compile(std::move(compile_options))
                      : model.Compile(*strategy, std::move(compile_options)));
  RETURN_IF_ERROR(model.RestoreFromKeras(path, *weights,
                                         /*values_only=*/!continues_training));
  return model;
}

}  // namespace

absl::StatusOr<Model> LoadModel(const std::string& path,
                                const LoadModelOptions& options) {
  return Load(nullptr, path, options);
}

absl::StatusOr<Model> LoadModel(Strategy& strategy, const std::string& path,
                                const LoadModelOptions& options) {
  return Load(&strategy, path, options);
}

}  // namespace muster
