#ifndef COMMON_COMPUTE_VARIABLES_CHECKPOINT_NAMES_H_
#define COMMON_COMPUTE_VARIABLES_CHECKPOINT_NAMES_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/io/checkpoint/object_graph.h"

namespace muster {

// The names of variables' state in a checkpoint. Names of variables are taken
// apart at their slashes, so "dense/kernel" is what TensorFlow restores by
//
//   tf.train.Checkpoint(model=m, optimizer=o)    with m.dense.kernel
//
// and tf.train.load_checkpoint() reads by these names. Partitioned variables
// are one tensor, of which each part brings its slice.
//
//   the variable           model/dense/kernel
//   a slot                 its slot "momentum" of the object optimizer
//   gradients taken        optimizer/update_counts/dense/kernel     int64
//   the most of those      optimizer/iterations                     int64
//   the learning rate      optimizer/learning_rate                  float32
//   Nadam's U(t)           optimizer/momentum_product               float32
//   where training stands  training_state       string: proto TrainingState
//   the number in its name save_counter                             int64

// {"model"}.
ObjectPath ModelPath();
// {"model", "dense", "kernel"}.
ObjectPath VariablePath(absl::string_view variable);
// {"optimizer"}.
ObjectPath OptimizerPath();
// {"optimizer", "update_counts", "dense", "kernel"}.
ObjectPath UpdateCountPath(absl::string_view variable);
ObjectPath IterationsPath();
ObjectPath LearningRatePath();
// The state that Keras' Nadam keeps for all variables; Muster computes it.
ObjectPath MomentumProductPath();
ObjectPath TrainingStatePath();
ObjectPath SaveCounterPath();

// The tensor that holds the variable "dense/kernel" itself, of the shape of the
// whole variable.
std::string VariableValueKey(absl::string_view variable);

// A slot of the optimizer; of the variable's type, and split as it is.
std::string VariableSlotKey(absl::string_view variable, absl::string_view slot);

// The number of gradients it has taken: an int64 scalar. Of a partitioned
// variable it is written by the shard that holds row 0.
std::string UpdateCountKey(absl::string_view variable);

// The slot that `key` is of this variable; none for keys of anything else.
std::optional<std::string> SlotNameOf(absl::string_view variable,
                                      absl::string_view key);

// The variable whose value is under `key`; none for keys of anything else.
std::optional<std::string> VariableNameOf(absl::string_view key);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_CHECKPOINT_NAMES_H_
