#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_KERAS_OBJECTS_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_KERAS_OBJECTS_H_

#include <vector>

#include "common/io/checkpoint/object_graph.h"
#include "common/learn/nn/layer.h"

namespace muster {

// The attributes by which a Keras model leads to its weights, for the object
// graph of a checkpoint: with them tf.train.Checkpoint(model=m).restore() finds
// ours. Of the model and of each model inside:
//
//   functional  model/_operations/<i>              is the layer i
//   Sequential  model/_functional/_operations/<i>  is the layer i, after the
//                                                  input, which is layer 0
//   subclassed  model/<layer>                      as ours, where attributes
//                                                  are called like the layers
//   weights     <layer>/_kernel                    is <layer>/kernel
//
// Each is a second path to an object at model/<name of a weight or layer>.
// Only of layers with weights, which must be built.
std::vector<ObjectReference> KerasObjectsOf(const Layer& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_KERAS_OBJECTS_H_
