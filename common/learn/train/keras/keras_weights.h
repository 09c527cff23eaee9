#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_WEIGHTS_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_WEIGHTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/variable_store.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/load_weights_options.h"

namespace muster {

namespace proto {
class Optimizer;
}  // namespace proto

// Conversion between checkpoints and the weights of Keras' files. Variables are
// saved and restored through checkpoints wherever they are, in this process, on
// replicas or on parameter servers; files of Keras are made of those, and those
// of them.

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

// Writes the checkpoint `prefix` with the state of every variable of the store:
// what the file has for the weights of the model, and what is there now for
// others. With an optimizer, the file must have its state; a file without a
// scale of the loss leaves `loss_scale` as it is. A file of Keras 2 has no
// state of an optimizer here.
//   kNotFound         the file lacks a weight; names it and its path
//   kInvalidArgument  the file has a weight of another type, or more weights
//                     than a layer of the model, or the state of another
//                     optimizer
//   others            of the file, the store and the disk
absl::Status WriteCheckpointFromKeras(const Hdf5Reader& file,
                                      const Layer& model,
                                      const proto::Optimizer* optimizer,
                                      const std::string& loss_scale,
                                      VariableStore& variables, Disk* disk,
                                      absl::string_view prefix,
                                      const LoadWeightsOptions& options = {});

// Returns true if the file has the state of an optimizer that has trained.
bool HasOptimizerState(const Hdf5Reader& file);

// Returns true if that optimizer is inside a LossScaleOptimizer. Compile
// settings do not say so if Model.compile() of Keras has put it there.
bool HasLossScale(const Hdf5Reader& file);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_WEIGHTS_H_
