#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_OBJECTS_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_OBJECTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/learn/nn/layer.h"

namespace muster {

namespace proto {
class Optimizer;
}  // namespace proto

// Returns the attributes through which a Keras model refers to its weights, for
// the object graph of a checkpoint. With them,
// tf.train.Checkpoint(model=m).restore() finds the weights. For the model and
// each nested model:
//
//   functional  model/_operations/<i>              is layer i
//   Sequential  model/_functional/_operations/<i>  is layer i, where layer 0 is
//                                                  the input
//   subclassed  model/<layer>                      is already present if the
//                                                  attributes are named like
//                                                  the layers
//   weights     <layer>/_kernel                    is <layer>/kernel
//   shared      <layer>/<inner layer>              is the inner layer of the
//                                                  first layer that has it
//
// Each is a second path to an object at model/<name of a weight or layer>. Only
// layers with weights are included; they must be built.
std::vector<ObjectReference> KerasObjectsOf(const Layer& model);

// Returns the attributes through which an optimizer of Keras refers to its
// variables and to the weights that it trains:
//
//   optimizer/_iterations, _learning_rate      the tensors without underscore
//   optimizer/_momentums/<k>, ...              slots of trainable weight k
//   optimizer/_trainable_variables/<k>         is trainable weight k
//   optimizer/_variables/<n>                   all variables in Keras' order
//   model/optimizer                            is optimizer
//
// With a loss scale, the first four are below optimizer/inner_optimizer, and
// the weights that it trains are in both places.
//
// Slots do not exist before the first step.
//   kInvalidArgument  `optimizer` is invalid
absl::StatusOr<std::vector<ObjectReference>> KerasOptimizerObjectsOf(
    const Layer& model, const proto::Optimizer& optimizer);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_OBJECTS_H_
