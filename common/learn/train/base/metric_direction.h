#ifndef COMMON_LEARN_TRAIN_BASE_METRIC_DIRECTION_H_
#define COMMON_LEARN_TRAIN_BASE_METRIC_DIRECTION_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "common/learn/nn/metric.h"
#include "common/learn/train/base/step_results.h"

namespace muster {

// The direction in which a metric improves.
enum class MetricDirection { kUp, kDown };

// Returns the direction of the metric's kind, whatever its name. Unset for
// kinds that have none, such as counts and sums, and for kinds that Keras does
// not have.
//
// Equivalent to: keras.metrics.Metric._direction.
std::optional<MetricDirection> DirectionOf(const Metric& metric);

// Returns the direction of the value `name` in the logs of a step with these
// results. The direction of losses, and of "loss" in any case, is kDown.
std::optional<MetricDirection> DirectionOf(const StepResults& results,
                                           absl::string_view name);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_METRIC_DIRECTION_H_
