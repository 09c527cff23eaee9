#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_DIFFERENCES_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_DIFFERENCES_H_

#include "absl/strings/string_view.h"
#include "common/learn/train/keras/keras_object.h"

// What a config means depends on the version of Keras that wrote it.
namespace muster {

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
