#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_WEIGHTS_SIZE_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_WEIGHTS_SIZE_H_

#include <cstdint>
#include <optional>

#include "common/io/keras/keras_archive.h"

namespace muster {

// Returns how many bytes the weights of an archive can have: the values of each
// weight of the model in its config, and of each slot of its optimizer, and an
// allowance for what HDF5 and Keras keep beside them. None if the config is no
// model that Muster can build. `archive` is without weights.
std::optional<int64_t> KerasWeightsSizeBytesMax(const KerasArchive& archive);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_WEIGHTS_SIZE_H_
