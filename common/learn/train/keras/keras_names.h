#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_NAMES_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_NAMES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/metric.h"
#include "common/learn/train/base/fit_options.h"

// Losses and metrics by the names that Keras' compile() takes: those of classes
// and functions ("MeanSquaredError", "mean_squared_error"), short ones ("mse"),
// and "accuracy" ("acc") and "crossentropy" ("ce"), whose kind follows from the
// shapes of labels and predictions.

namespace muster {

// Returns the entry of kLayerKinds of a class of Keras; null if there is none.
const LayerKind* FindKerasLayerKind(absl::string_view class_name);

// The error of a class that is not in the table; names similar ones.
absl::Status UnknownKerasLayer(absl::string_view place,
                               absl::string_view class_name);

// Returns the loss with Keras' defaults. `place` is how errors call it.
//   kInvalidArgument  there is no such loss; the message has names that are
//   near
absl::StatusOr<Loss> LossNamed(absl::string_view place, absl::string_view name);

// As LossNamed(). A loss is a metric, too. The metric is called `name`.
absl::StatusOr<Metric> MetricNamed(absl::string_view place,
                                   absl::string_view name);

// Replaces losses and metrics that are names by what they name.
//   as LossNamed()
absl::Status LookUpNames(CompileOptions* options);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_NAMES_H_
