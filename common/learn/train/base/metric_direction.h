#ifndef COMMON_LEARN_TRAIN_BASE_METRIC_DIRECTION_H_
#define COMMON_LEARN_TRAIN_BASE_METRIC_DIRECTION_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "common/learn/nn/metric.h"
#include "common/learn/train/base/step_results.h"

namespace muster {

// The direction in which a metric improves.
enum class MetricDirection { kUp, kDown };

// By the kind of the metric, whatever its name. Unset for kinds that have none,
// such as counts and sums, and for those that are not Keras'.
//
// Equivalent to: keras.metrics.Metric._direction.
std::optional<MetricDirection> DirectionOf(const Metric& metric);

// Of the value that the logs of such a step have under `name`. Losses decrease,
// and so does "loss", whatever it is.
std::optional<MetricDirection> DirectionOf(const StepResults& results,
                                           absl::string_view name);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_METRIC_DIRECTION_H_
