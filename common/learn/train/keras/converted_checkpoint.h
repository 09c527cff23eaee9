#ifndef COMMON_LEARN_TRAIN_KERAS_CONVERTED_CHECKPOINT_H_
#define COMMON_LEARN_TRAIN_KERAS_CONVERTED_CHECKPOINT_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/disk.h"

namespace muster {

// The state of a file of Keras, by the keys of checkpoint_names.h.
using ConvertedState = std::map<std::string, Tensor>;

// Writes the checkpoint `prefix` with `state`, and with the present values of
// the other variables of the store, so that VariableStore::Restore() reads it.
//   of VariableStore::Read() and of the disk
absl::Status WriteConvertedCheckpoint(ConvertedState state,
                                      VariableStore& variables, Disk* disk,
                                      absl::string_view prefix);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_CONVERTED_CHECKPOINT_H_
