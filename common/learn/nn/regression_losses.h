#ifndef COMMON_LEARN_NN_REGRESSION_LOSSES_H_
#define COMMON_LEARN_NN_REGRESSION_LOSSES_H_

#include <cstdint>

#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/loss_options.h"

// Losses of numbers. Labels y and predictions x have one shape, [batch, ...];
// unless stated otherwise, the loss of an example is a mean over the last axis.
// Source: https://keras.io/api/losses/regression_losses/
namespace muster {

// (y - x)^2 and |y - x|.
Loss MeanSquaredError(const LossOptions& options = {});
Loss MeanAbsoluteError(const LossOptions& options = {});

// 100 * |y - x| / max(|y|, 1e-7)
Loss MeanAbsolutePercentageError(const LossOptions& options = {});

// (log(x + 1) - log(y + 1))^2, where x and y are at least 1e-7.
Loss MeanSquaredLogarithmicError(const LossOptions& options = {});

struct HuberOptions {
  double delta = 1;
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};
// e^2 / 2 for errors |e| <= delta, else delta * |e| - delta^2 / 2. Keras' class
// names its losses "huber_loss".
Loss Huber(const HuberOptions& options = {});

// log(cosh(x - y)), computed without overflow.
Loss LogCosh(const LossOptions& options = {});

struct CosineSimilarityOptions {
  // The axis of the vectors. Not the batch.
  int64_t axis = -1;
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};
// -cos(y, x): -1 for vectors of the same direction, 1 for opposite ones, and 0
// if one of them is 0. Not a mean: one number for each pair of vectors. Reports
// kInvalidArgument to the builder if the axis is the batch or does not exist.
Loss CosineSimilarity(const CosineSimilarityOptions& options = {});

// x - y * log(x + 1e-7): the negative log-likelihood of counts y under Poisson
// distributions of means x, without the term that does not depend on x.
Loss Poisson(const LossOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_REGRESSION_LOSSES_H_
