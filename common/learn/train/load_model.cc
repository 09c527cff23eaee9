#include "common/learn/train/load_model.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/keras/keras_compile_config.h"
#include "common/learn/train/keras/keras_model.h"
#include "common/learn/train/keras/keras_weights.h"
#include "common/learn/train/model.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

absl::StatusOr<Model> Load(
    const std::string& path, const LoadModelOptions& options,
    absl::FunctionRef<absl::Status(Model& model, CompileOptions options)>
        compile) {
  ASSIGN_OR_RETURN(const KerasModel file, ReadKerasModel(Disk::Real(), path));
  Model model(file.layers);
  std::optional<CompileOptions> compiled;
  if (options.compile) {
    auto read = CompileOptionsFromKeras(file.config, *file.layers);
    if (!read.ok()) {
      return absl::Status(read.status().code(),
                          absl::StrCat(path, ": ", read.status().message()));
    }
    compiled = *std::move(read);
  }
  const bool continues_training = compiled.has_value() &&
                                  HasOptimizerState(*file.weights) &&
                                  compiled->optimizer.has_rule();
  if (continues_training) {
    compiled->auto_scale_loss = HasLossScale(*file.weights);
  }
  CompileOptions compile_options = compiled.value_or(CompileOptions());
  RETURN_IF_ERROR(compile(model, std::move(compile_options)));
  RETURN_IF_ERROR(model.RestoreFromKeras(path, *file.weights,
                                         /*values_only=*/!continues_training));
  return model;
}

}  // namespace

absl::StatusOr<Model> LoadModel(const std::string& path,
                                const LoadModelOptions& options) {
  return Load(path, options, [](Model& model, CompileOptions compile_options) {
    return model.Compile(std::move(compile_options));
  });
}

absl::StatusOr<Model> LoadModel(Strategy& strategy, const std::string& path,
                                const LoadModelOptions& options) {
  return Load(path, options, [&](Model& model, CompileOptions compile_options) {
    return model.Compile(strategy, std::move(compile_options));
  });
}

absl::StatusOr<Model> LoadModel(std::shared_ptr<Strategy> strategy,
                                const std::string& path,
                                const LoadModelOptions& options) {
  return Load(path, options, [&](Model& model, CompileOptions compile_options) {
    return model.Compile(strategy, std::move(compile_options));
  });
}

}  // namespace muster
