#ifndef COMMON_COMPUTE_OPTIMIZERS_KERAS_CONFIG_H_
#define COMMON_COMPUTE_OPTIMIZERS_KERAS_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/optimizer.pb.h"

namespace muster {

// Optimizers as keras.optimizers.serialize() writes them:
//
//   {"module": "keras.optimizers", "class_name": "Adam",
//    "config": {"learning_rate": 0.001, "weight_decay": null, ...},
//    "registered_name": null}
//
// with a schedule in the same form in the place of learning_rate. The names in
// `config` are the names of the fields of the schema (proto/optimizer.proto),
// so this is for every optimizer and schedule in the tables.

// keras.optimizers.deserialize() takes what this returns.
//   kInvalidArgument  `optimizer` or its schedule is none: see
//                     CompleteOptimizer() and CompleteSchedule()
absl::StatusOr<std::string> KerasConfigOf(const proto::Optimizer& optimizer);

// The optimizer that `json` describes. What Keras offers and Muster does not
// (use_ema, loss_scale_factor, gradient_accumulation_steps) has to be off.
//   kInvalidArgument  `json` is no JSON, or no optimizer or schedule of the
//                     tables, or an argument is unknown, of another type, or of
//                     no use here; names it
absl::StatusOr<proto::Optimizer> OptimizerFromKerasConfig(
    absl::string_view json);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_KERAS_CONFIG_H_
