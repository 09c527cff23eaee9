#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_LEGACY_CONFIG_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_LEGACY_CONFIG_H_

#include <cstddef>

#include "common/learn/train/keras/keras_object.h"

// How the config of a functional model of Keras 2 differs from that of Keras 3.
namespace muster {

// Returns true for [layer, call of the layer, output of the call].
bool IsKerasHistory(const KerasJson& json);

// Returns an entry of inbound_nodes of Keras 2, [[layer, call, output,
// {keywords}], ...], as Keras 3 writes it: {"args": [...], "kwargs": {...}}.
KerasJson NodeFromLegacy(const KerasJson& entries);

// Returns the number that the file gives the first call of an entry of a
// functional model's layers: 1 for a model in a file of Keras 2, which counts
// the model's own inputs as a call, otherwise 0.
size_t FirstCallOf(const KerasJson& entry);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_LEGACY_CONFIG_H_
