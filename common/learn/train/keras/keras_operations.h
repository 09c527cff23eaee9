#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_OPERATIONS_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_OPERATIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {

// Between layers, programs use operations of keras.ops, such as `x + y`, `x *
// 2` and `keras.ops.relu(x)`. Returns the entry of the layer that computes the
// same, or `entry` itself if it is that of a layer. `entry` is one of a
// functional model's layers, and `place` says where, for errors.
//   kInvalidArgument  Muster has no such operation; names it
absl::StatusOr<KerasJson> LayerOfOperation(absl::string_view place,
                                           const KerasJson& entry);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_OPERATIONS_H_
