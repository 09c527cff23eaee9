#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_DIFFERENCES_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_DIFFERENCES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/learn/train/keras/keras_object.h"

// How the config of a functional model of Keras 2 differs from that of Keras 3.

// Activations that Keras 3 has no name for, in its files: objects that compute
// them.
//
//   hard_sigmoid_keras2  clip(0.2 x + 0.5, 0, 1), the hard_sigmoid of Keras 2:
//                        a model of two layers, relu6(1.2 x + 3) / 6
//   gelu_approximate     the operation Gelu(approximate=True)

// What a config means depends on the version of Keras that wrote it.

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

// Returns the activation with this name (ActivationName()) as Keras 3 reads it;
// none if Keras has the name.
std::optional<KerasJson> UnnamedActivationJson(absl::string_view name);

// Returns the name of the activation that such an object computes, also after
// Keras 3 saved it again; empty for other objects.
std::string UnnamedActivationOf(const KerasJson& activation);

// A version of Keras, without its last number.
struct KerasVersion {
  int major = 0;
  int minor = 0;

  friend bool operator<(const KerasVersion& a, const KerasVersion& b) {
    return a.major != b.major ? a.major < b.major : a.minor < b.minor;
  }
  friend bool operator==(const KerasVersion& a, const KerasVersion& b) {
    return a.major == b.major && a.minor == b.minor;
  }
};

// Parses "2.15.0" or "2.1.6-tf". Returns `otherwise` if it is none, and so for
// files that do not say their version.
KerasVersion ParseKerasVersion(absl::string_view text, KerasVersion otherwise);

// Rewrites the config of a model, and of every object in it, as the version of
// Keras that Muster follows (docs/keras.md) writes one that means the same:
// arguments that were dropped or renamed, values with another meaning, defaults
// that were others, classes that are gone. The table of differences is in
// keras_differences.cc.
void UpdateKerasConfig(KerasVersion version, KerasJson* model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_DIFFERENCES_H_
