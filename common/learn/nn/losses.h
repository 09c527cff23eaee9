#ifndef COMMON_LEARN_NN_LOSSES_H_
#define COMMON_LEARN_NN_LOSSES_H_

#include <cstdint>
#include <optional>

#include "common/learn/nn/loss.h"

// Keras' losses, with Keras' names, defaults and numerics. Each is also a
// metric: its mean.
namespace muster {

struct LossOptions {
  Reduction reduction = Reduction::kSumOverBatchSize;
};

// Means over the last axis.
Loss MeanSquaredError(const LossOptions& options = {});
Loss MeanAbsoluteError(const LossOptions& options = {});

struct CrossentropyOptions {
  // Predictions are logits, and not probabilities. Preferred: exact where
  // probabilities would round to 0 or 1.
  bool from_logits = false;
  // How much of each label is spread evenly over all classes.
  double label_smoothing = 0;
  Reduction reduction = Reduction::kSumOverBatchSize;
};

// Labels and predictions of one shape, each label 0 or 1; a mean over the last
// axis.
Loss BinaryCrossentropy(const CrossentropyOptions& options = {});

// One-hot labels [..., classes].
Loss CategoricalCrossentropy(const CrossentropyOptions& options = {});

struct SparseCrossentropyOptions {
  bool from_logits = false;
  // Examples with this label count for nothing.
  std::optional<int64_t> ignore_class = std::nullopt;
  Reduction reduction = Reduction::kSumOverBatchSize;
};

// Labels are class numbers [...] for predictions [..., classes].
Loss SparseCategoricalCrossentropy(
    const SparseCrossentropyOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LOSSES_H_
