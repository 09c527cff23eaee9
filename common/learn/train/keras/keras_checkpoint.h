#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_CHECKPOINT_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_CHECKPOINT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/variable_store.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"

namespace muster {

namespace proto {
class TrainingState;
}  // namespace proto

// Checkpoints that Keras 3 writes with
//
//   tf.train.Checkpoint(model=m, optimizer=o)    or
//   tf.train.Checkpoint(model=m)                 if m is compiled
//
// Tensors are found through the object graph: a weight as FindVariableValue()
// finds it, and a slot as the element of the optimizer's list, such as
// "_momentums", at the position that the weight has in "_trainable_variables".

// Returns true if `reader` has an optimizer of Keras and no TrainingState.
bool HasKerasOptimizer(const TensorBundleReader& reader);

// Writes the checkpoint `prefix` with the weights and the optimizer's state in
// `reader`, for VariableStore::Restore() and ReadTrainingState(). Its state of
// training is `state`, whose optimizer is that of the model, with the learning
// rate in `reader` if there is one. `loss_scale` is the variable with the scale
// of the loss, which stays as it is if `reader` has none; empty: no scale.
//   kNotFound         the checkpoint lacks a weight
//   kInvalidArgument  a weight or slot has another type there, or the optimizer
//                     is another one or trains other weights
//   others            of `reader`, the store and the disk
absl::Status WriteCheckpointFromKeras(const TensorBundleReader& reader,
                                      const Layer& model,
                                      proto::TrainingState state,
                                      const std::string& loss_scale,
                                      VariableStore& variables, Disk* disk,
                                      absl::string_view prefix);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_CHECKPOINT_H_
