#ifndef COMMON_LEARN_NN_LAYERS_BATCH_NORMALIZATION_H_
#define COMMON_LEARN_NN_LAYERS_BATCH_NORMALIZATION_H_

#include <cstdint>
#include <string>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

struct BatchNormalizationOptions {
  // The axis of the channels, which must be the last one: -1, or the rank of
  // the input less 1.
  int64_t axis = -1;
  // The weight of the previous moving statistics in each update.
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;  // Adds beta.
  bool scale = true;   // Multiplies by gamma.
  Initializer beta_initializer = Zeros();
  Initializer gamma_initializer = Ones();
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  Initializer moving_mean_initializer = Zeros();
  Initializer moving_variance_initializer = Ones();
  // If true, the statistics are those of the global batch, over all replicas
  // that train in sync. Otherwise each replica normalizes with the statistics
  // of its own batch.
  bool synchronized = false;
  std::string name = "";
};

// Normalizes each channel (the last axis). While training, uses the mean and
// variance of the batch and updates the moving statistics with them. Otherwise,
// and if the layer is not trainable, uses the moving statistics.
//
//   y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
//   moving = moving * momentum + batch * (1 - momentum)
//
// Input and output: [batch, ..., channels]. Weights: gamma if `scale`, beta if
// `center`, moving_mean, moving_variance; float32 [channels].
//
// Replicas that train in sync apply the mean of their updates, over the
// replicas that have data, so that their moving statistics stay identical.
//
// Masked positions are normalized, but excluded from the statistics. If all
// positions are masked, the moving statistics do not change. The mask must have
// shape [batch, ...]: one element per position of the channels. Any other shape
// is kInvalidArgument.
//
// `synchronized` replicas train as one does on the global batch, also if they
// have different numbers of examples or of masked positions.
//
// Source: Ioffe and Szegedy, "Batch Normalization", 2015 (arXiv:1502.03167);
// keras.layers.BatchNormalization.
class BatchNormalizationLayer : public Layer {
 public:
  explicit BatchNormalizationLayer(const BatchNormalizationOptions& options)
      : Layer(options.name), options_(options) {}

  // 16-bit inputs are normalized with float32 statistics and weights.
  Precision precision() const override { return Precision::kAsTheyCome; }

  bool mixes_examples() const override { return true; }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  struct Statistics {
    Value mean;
    Value variance;
    Value count;  // Number of rows; a float32 scalar.
  };
  // `mask` is poisoned if no position of `x` is masked.
  Value Train(Value x, Value mask, Value gamma, Value beta);
  static Statistics OfAllReplicas(Value x, Value mask);
  void MoveStatistics(const Statistics& batch);

  BatchNormalizationOptions options_;
  Weight gamma_;
  Weight beta_;
  Weight moving_mean_;
  Weight moving_variance_;
};

// Equivalent to: keras.layers.BatchNormalization.
LayerPtr BatchNormalization(const BatchNormalizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_BATCH_NORMALIZATION_H_
