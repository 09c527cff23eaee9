#ifndef COMMON_LEARN_TRAIN_KERAS_CONVERTED_STATE_H_
#define COMMON_LEARN_TRAIN_KERAS_CONVERTED_STATE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_state.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/disk.h"

namespace muster {

// The state that a file of Keras has for variables of the model, by their
// names. A variable without a valid value keeps the one that it has.
using ConvertedState = std::map<std::string, VariableState>;

// Replaces the state of all variables as VariableStore::Restore() of a
// checkpoint with `state` would. With `values_only`, variables that are not in
// `state` stay as they are; otherwise they lose their slots and counts.
//   of ReplicaVariables
absl::Status RestoreConvertedState(ConvertedState state, bool values_only,
                                   ReplicaVariables& variables);

// Writes the checkpoint `prefix` with `state`, with the present values of the
// other variables of the store, and with `others`, for VariableStore::Restore()
// where the variables are in other processes.
//   of VariableStore::Read() and of the disk
absl::Status WriteConvertedCheckpoint(
    ConvertedState state, VariableStore& variables, Disk* disk,
    absl::string_view prefix, const std::map<std::string, Tensor>& others = {});

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_CONVERTED_STATE_H_
