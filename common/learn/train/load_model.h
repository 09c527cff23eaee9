#ifndef COMMON_LEARN_TRAIN_LOAD_MODEL_H_
#define COMMON_LEARN_TRAIN_LOAD_MODEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/model.h"

namespace muster {

struct LoadModelOptions {
  // If true and the model was compiled when it was saved, compiles it with the
  // same options and restores the optimizer's state, so that Fit() continues
  // where training stopped. Otherwise the model supports only Predict() until
  // it is compiled.
  bool compile = true;
};

// Loads a model that Keras 3 or Model::Save() wrote to a .keras file: its
// layers, its weights, and its compile options. For a model of Keras 2, or one
// that Keras 3 saved as "model.h5", loads only the layers and the weights.
//
//   ASSIGN_OR_RETURN(Model model, LoadModel("model.keras"));
//   ASSIGN_OR_RETURN(Tensor y, model.Predict({x}));
//
// The weights are created with the strategy in whose scope this thread is, or
// else with a default strategy that the model owns. If replicas train in sync,
// all processes must load the same file. docs/keras.md lists what is supported.
//
// The file is not trusted; see common/io/keras/keras_archive.h.
//   kNotFound         the file does not exist, or lacks a weight
//   kInvalidArgument  Muster does not have a layer, an argument, an optimizer,
//                     a loss or a metric; names it and its place in the file
//   kDataLoss         the file is damaged, or neither a .keras file nor an .h5
//                     file
//   others            errors of the disk and of the strategy
//
// Equivalent to: keras.models.load_model.
absl::StatusOr<Model> LoadModel(const std::string& path,
                                const LoadModelOptions& options = {});
// `strategy` is borrowed, as by Model::Compile().
absl::StatusOr<Model> LoadModel(Strategy& strategy, const std::string& path,
                                const LoadModelOptions& options = {});
// The model keeps the strategy.
//   kInvalidArgument  `strategy` is null
absl::StatusOr<Model> LoadModel(std::shared_ptr<Strategy> strategy,
                                const std::string& path,
                                const LoadModelOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_LOAD_MODEL_H_
