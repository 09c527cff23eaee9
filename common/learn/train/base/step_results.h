#ifndef COMMON_LEARN_TRAIN_BASE_STEP_RESULTS_H_
#define COMMON_LEARN_TRAIN_BASE_STEP_RESULTS_H_

#include <string>
#include <vector>

#include "common/learn/nn/metric.h"

namespace muster {

// The results of a step. They add up over replicas.
struct StepResults {
  // The first results are losses, by the names that logs have for them; an
  // empty name: for no log. Each is float32[3]: {loss times what it is a mean
  // over, that (0: the loss is no mean, and stands for itself), the number of
  // examples}.
  std::vector<std::string> losses;
  // Of the results behind them, which are the statistics of these.
  std::vector<Metric> metrics;
  // True if there is one more result behind them, float32[2]: {the scale of the
  // loss in this step, 1}.
  bool has_loss_scale = false;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_STEP_RESULTS_H_
