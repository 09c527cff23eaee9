#ifndef COMMON_LEARN_NN_GROUP_NORMALIZATION_H_
#define COMMON_LEARN_NN_GROUP_NORMALIZATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "proto/variable.pb.h"

namespace muster {

struct GroupNormalizationOptions {
  // How many groups the channels are divided into, or -1: each channel is a
  // group (instance normalization). Must divide the number of channels.
  int64_t groups = 32;
  // Of the channels; a negative one counts from the back. Never the batch's.
  int64_t axis = -1;
  double epsilon = 1e-3;  // Added to the variance.
  bool center = true;     // Adds beta.
  bool scale = true;      // Multiplies by gamma.
  proto::Initializer beta_initializer = Zeros();
  proto::Initializer gamma_initializer = Ones();
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  std::string name = "";
};

// For each example and group of channels
//
//   y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
//
// with the mean and variance over the channels of the group and all other axes
// but the batch's. Computed in float32 or wider; does not depend on the batch,
// and so not on how replicas share it.
//
// Input and output: [batch, ...] of rank 2 or more; all extents but the
// batch's must be known.
// Weights: gamma [channels] if `scale`, beta [channels] if `center`; float32.
//
// Wu and He, "Group Normalization", 2018 (arXiv:1803.08494).
class GroupNormalizationLayer : public Layer {
 public:
  explicit GroupNormalizationLayer(const GroupNormalizationOptions& options)
      : Layer(options.name), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Precision precision() const override { return Precision::kFloat32; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  // `shape` with the extent of `axis` divided into groups and their channels.
  // Empty where that cannot be done.
  std::vector<int64_t> Divide(const Shape& shape, int axis) const;

  GroupNormalizationOptions options_;
  Weight gamma_;
  Weight beta_;
};

// Equivalent to: keras.layers.GroupNormalization.
LayerPtr GroupNormalization(const GroupNormalizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_GROUP_NORMALIZATION_H_
