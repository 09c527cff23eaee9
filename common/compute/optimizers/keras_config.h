#ifndef COMMON_COMPUTE_OPTIMIZERS_KERAS_CONFIG_H_
#define COMMON_COMPUTE_OPTIMIZERS_KERAS_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

namespace proto {
class Optimizer;
}  // namespace proto

// The class that wraps an optimizer with a loss_scale. It is not an
// OptimizerKind.
inline constexpr absl::string_view kLossScaleClass = "LossScaleOptimizer";

// Conversion of optimizers from and to the JSON of
// keras.optimizers.serialize():
//
//   {"module": "keras.optimizers", "class_name": "Adam",
//    "config": {"learning_rate": 0.001, "weight_decay": null, ...},
//    "registered_name": null}
//
// A learning-rate schedule is an object of the same form at learning_rate. The
// names in `config` are the field names of proto/optimizer.proto, so all
// optimizers and schedules in the tables are supported. An optimizer with a
// loss_scale is the inner_optimizer of a LossScaleOptimizer.

// Returns JSON that keras.optimizers.deserialize() accepts.
//   kInvalidArgument  `optimizer` or its schedule is invalid; see
//                     CompleteOptimizer() and CompleteSchedule()
absl::StatusOr<std::string> KerasConfigOf(const proto::Optimizer& optimizer);

// Returns the optimizer that `json` describes. loss_scale_factor, which Muster
// does not support, must be off.
//   kInvalidArgument  `json` is not valid JSON or not an optimizer or schedule
//                     of the tables; or an argument is unknown, has the wrong
//                     type, or is not supported; the message names the argument
absl::StatusOr<proto::Optimizer> OptimizerFromKerasConfig(
    absl::string_view json);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_KERAS_CONFIG_H_
