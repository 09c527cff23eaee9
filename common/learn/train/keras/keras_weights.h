#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_WEIGHTS_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/keras_archive.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/base/load_weights_options.h"
#include "common/learn/train/keras/converted_state.h"

namespace muster {

// Returns how many bytes the weights of an archive can have: the values of each
// weight of the model in its config, and of each slot of its optimizer, and an
// allowance for what HDF5 and Keras keep beside them. None if the config is no
// model that Muster can build. `archive` is without weights.
std::optional<int64_t> KerasWeightsSizeBytesMax(const KerasArchive& archive);

namespace proto {
class Optimizer;
}  // namespace proto

// Conversion between the state of variables and the weights of Keras' files.
// Files are made of checkpoints, which stores write wherever their variables
// are: in this process, on replicas or on parameter servers.

// Returns the bytes of a file with the weights of a built model. With an
// optimizer, the file has its state, too. `loss_scale` is the variable with the
// scale of the loss, if the optimizer has one.
//   kNotFound         the checkpoint lacks a weight
//   kInvalidArgument  a weight has a type that Keras' files do not have
//   kUnimplemented    the model is neither Sequential nor functional
//   others            of the checkpoint
absl::StatusOr<std::string> KerasWeightsOf(const TensorBundleReader& checkpoint,
                                           const Layer& model,
                                           const proto::Optimizer* optimizer,
                                           const std::string& loss_scale);

// Returns the state that the file has for the weights of the model. With an
// optimizer, the file must have its state; a file without a scale of the loss
// leaves `loss_scale` as it is. A file of Keras 2 has no state of an optimizer
// here.
//   kNotFound         the file lacks a weight; names it and its path
//   kInvalidArgument  the file has a weight of another type, or more weights
//                     than a layer of the model, or the state of another
//                     optimizer
//   others            of the file
absl::StatusOr<ConvertedState> StateFromKeras(
    const Hdf5Reader& file, const Layer& model,
    const proto::Optimizer* optimizer, const std::string& loss_scale,
    const LoadWeightsOptions& options = {});

// Returns true if the file has the state of an optimizer that has trained.
bool HasOptimizerState(const Hdf5Reader& file);

// Returns true if that optimizer is inside a LossScaleOptimizer. Compile
// settings do not say so if Model.compile() of Keras has put it there.
bool HasLossScale(const Hdf5Reader& file);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_WEIGHTS_H_
