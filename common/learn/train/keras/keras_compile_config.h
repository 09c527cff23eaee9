#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_COMPILE_CONFIG_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_COMPILE_CONFIG_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/structure.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {

// The arguments of keras.Model.compile(), from and to the member
// "compile_config" of a model's JSON: the optimizer with its schedule, losses,
// their weights, metrics, and steps_per_execution.

// `model` is the model's JSON, and `layers` what LayersFromKeras() made of it,
// whose output shapes say what "accuracy" is. Empty if the model was not
// compiled. Losses and metrics by the name of an output are put in the order of
// the outputs.
//   kInvalidArgument  an optimizer, a loss, a metric or an argument that Muster
//                     does not have; names it and its place
absl::StatusOr<std::optional<CompileOptions>> CompileOptionsFromKeras(
    const KerasJson& model, const Layer& layers);

// Returns how the outputs of a model are nested.
Structure OutputStructureOf(const Layer& layers);

// Returns the value for "compile_config" of a model with such outputs.
//   kUnimplemented  a loss or metric of the program's own, or steps of its own;
//                   names it. Keras could not make them from the file
absl::StatusOr<KerasJson> KerasCompileConfig(const CompileOptions& options,
                                             const Structure& outputs = {});

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_COMPILE_CONFIG_H_
