#ifndef COMMON_LEARN_NN_BATCH_NORMALIZATION_H_
#define COMMON_LEARN_NN_BATCH_NORMALIZATION_H_

#include <string>

#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "proto/variable.pb.h"

namespace muster {

struct BatchNormalizationOptions {
  // What the moving statistics keep of themselves in each step.
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;  // Adds beta.
  bool scale = true;   // Multiplies by gamma.
  proto::Initializer beta_initializer = Zeros();
  proto::Initializer gamma_initializer = Ones();
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  proto::Initializer moving_mean_initializer = Zeros();
  proto::Initializer moving_variance_initializer = Ones();
  // Statistics of what all replicas see that train in sync, each element
  // counting the same; otherwise each replica normalizes by its own.
  bool synchronized = false;
  std::string name = "";
};

// Normalizes each channel (the last axis): by the mean and variance of the
// batch while training, and by moving ones otherwise, or when the layer is not
// trainable. Training moves them towards those of the batch; replicas that
// train in sync move them by the mean of what those want that have data, so
// that their copies stay equal.
//
// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
// moving = moving * momentum + batch * (1 - momentum)
//
// Input and output: [batch, ..., channels].
// Weights: gamma if `scale`, beta if `center`, moving_mean, moving_variance;
// float32 [channels].
//
// Padding is normalized too, but counts in no statistics; where all is padding,
// the moving ones stay as they are. A mask that does not say of each position
// of the channels whether it is padding, [batch, ...], is an error.
//
// Where `synchronized` replicas have batches of different sizes, or different
// amounts of padding in them, gradients that come through the statistics of
// another replica have that replica's weight.
//
// Source: Ioffe and Szegedy, "Batch Normalization", 2015 (arXiv:1502.03167);
// keras.layers.BatchNormalization.
class BatchNormalizationLayer : public Layer {
 public:
  explicit BatchNormalizationLayer(const BatchNormalizationOptions& options)
      : Layer(options.name), options_(options) {}

  // 16-bit inputs are normalized by float32 statistics and weights.
  Precision precision() const override { return Precision::kAsTheyCome; }

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  struct Statistics {
    Value mean;
    Value variance;
    Value count;  // Rows they are of, a float32 scalar.
  };
  // `mask` is poisoned where all of `x` counts.
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

#endif  // COMMON_LEARN_NN_BATCH_NORMALIZATION_H_
