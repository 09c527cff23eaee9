#ifndef COMMON_COMPUTE_VARIABLES_CHECKPOINT_NAMES_H_
#define COMMON_COMPUTE_VARIABLES_CHECKPOINT_NAMES_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/io/checkpoint/object_graph.h"

namespace muster {

// The names of variables' state in a checkpoint. Names of variables are split
// at their slashes, so TensorFlow restores "dense/kernel" with
//
//   tf.train.Checkpoint(model=m, optimizer=o)    with m.dense.kernel
//
// and tf.train.load_checkpoint() reads it under the names below. A partitioned
// variable is one tensor; each part of it writes a slice.
//
//   the variable           model/dense/kernel
//   a slot                 its slot "momentum" of the object optimizer
//   gradients taken        optimizer/update_counts/dense/kernel     int64
//   their maximum          optimizer/iterations                     int64
//   the learning rate      optimizer/learning_rate                  float32
//   Nadam's U(t)           optimizer/momentum_product               float32
//   progress of training   training_state       string: proto TrainingState
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
// The state that Keras' Nadam keeps for all variables. Muster computes it for
// checkpoints.
ObjectPath MomentumProductPath();
ObjectPath TrainingStatePath();
ObjectPath SaveCounterPath();

// The key of the value of the variable "dense/kernel": a tensor with the shape
// of the whole variable.
std::string VariableValueKey(absl::string_view variable);

// The key of an optimizer slot. The slot has the variable's type and is split
// like the variable.
std::string VariableSlotKey(absl::string_view variable, absl::string_view slot);

// The key of the number of gradients that the variable has taken: an int64
// scalar. For a partitioned variable, the shard with row 0 writes it.
std::string UpdateCountKey(absl::string_view variable);

// The key of the gradients that a variable has taken beyond UpdateCountKey() in
// synchronous training on parameter servers: an int64 vector of their number,
// and of the number that makes one step.
std::string OpenRoundKey(absl::string_view variable);

// Returns the name of the slot of this variable that `key` holds; nothing for
// other keys.
std::optional<std::string> SlotNameOf(absl::string_view variable,
                                      absl::string_view key);

// Returns the name of the variable whose value `key` holds; nothing for other
// keys.
std::optional<std::string> VariableNameOf(absl::string_view key);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_CHECKPOINT_NAMES_H_
