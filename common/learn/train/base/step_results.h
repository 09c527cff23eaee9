#ifndef COMMON_LEARN_TRAIN_BASE_STEP_RESULTS_H_
#define COMMON_LEARN_TRAIN_BASE_STEP_RESULTS_H_

#include <string>
#include <vector>

#include "common/learn/nn/metric.h"

namespace muster {

// Describes the results of a step. The results are summed over replicas.
struct StepResults {
  // The first results are losses. These are their names in logs; a loss with an
  // empty name is not logged. Each result is float32[3]: {loss x denominator,
  // denominator, number of examples}. The denominator is the count over which
  // the loss is a mean. If the loss is not a mean, the first value is the loss
  // itself and the denominator is 0.
  std::vector<std::string> losses;
  // The metrics whose statistics are the results after the losses.
  std::vector<Metric> metrics;
  // True if a last result follows, float32[2]: {the scale of the loss in this
  // step, 1}.
  bool has_loss_scale = false;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_STEP_RESULTS_H_
