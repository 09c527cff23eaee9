#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_LAYER_CONFIG_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_LAYER_CONFIG_H_

#include <functional>

#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "nlohmann/json.hpp"

namespace muster {

// The classes of ProgramLayer, ProgramLoss() and ProgramMetric() in files of
// Keras, and their module. Muster's Python package writes them in place of what
// Muster does not have.
inline constexpr char kProgramClass[] = "Program";
inline constexpr char kProgramLossClass[] = "ProgramLoss";
inline constexpr char kProgramMetricClass[] = "ProgramMetric";
inline constexpr char kProgramModule[] = "muster.programs";

// Returns what keras.saving.serialize_keras_object() writes for a layer.
using KerasLayerWriter = std::function<nlohmann::ordered_json(Layer& layer)>;

// A layer as keras.saving.serialize_keras_object() writes it: class, name,
// dtype policy and hyperparameters. What a layer has no hyperparameter for is
// left out, and Keras then takes its default. What Keras has no form for
// (FixedValue(), a custom regularizer) is null. Keys are in the order in
// which they are added. Layers inside the layer are written by `write_inner`,
// and by this function itself if it is null.
nlohmann::ordered_json KerasLayerConfig(
    Layer& layer, const KerasLayerWriter& write_inner = nullptr);

// The hyperparameters that `visit` passes to its visitor, as an object.
nlohmann::ordered_json KerasConfigOf(
    const std::function<void(ConfigVisitor&)>& visit);

// The hyperparameters that are true, that job files have, and that in Keras are
// arguments of the layer's call: {"use_causal_mask": true}.
nlohmann::ordered_json KerasCallArguments(Layer& layer);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_LAYER_CONFIG_H_
