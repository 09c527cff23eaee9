#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_KERAS_OBJECTS_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_KERAS_OBJECTS_H_

#include <vector>

#include "common/io/checkpoint/object_graph.h"
#include "common/learn/nn/layer.h"

namespace muster {

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
//
// Each is a second path to an object at model/<name of a weight or layer>. Only
// layers with weights are included; they must be built.
std::vector<ObjectReference> KerasObjectsOf(const Layer& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_KERAS_OBJECTS_H_
