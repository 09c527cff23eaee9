#ifndef COMMON_LEARN_TRAIN_COMPILED_OUTPUTS_H_
#define COMMON_LEARN_TRAIN_COMPILED_OUTPUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/step_parts.h"

namespace muster {

// Returns the losses and metrics of each output of the layer.
//   kInvalidArgument  there are not as many losses, weights or lists of metrics
//                     as outputs, `loss` and `losses` (or
//                     `metrics` and `output_metrics`) are both given, or a
//                     weight is not a finite number
//   kFailedPrecondition  no output has a loss
absl::StatusOr<std::vector<OutputParts>> CompileOutputs(
    const Layer& layer, const CompileOptions& options);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_COMPILED_OUTPUTS_H_
