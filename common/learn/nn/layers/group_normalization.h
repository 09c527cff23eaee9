#ifndef COMMON_LEARN_NN_LAYERS_GROUP_NORMALIZATION_H_
#define COMMON_LEARN_NN_LAYERS_GROUP_NORMALIZATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

struct GroupNormalizationOptions {
  // The number of groups into which the channels are split. It must divide the
  // number of channels. -1: one group per channel (instance normalization).
  int64_t groups = 32;
  // The channel axis. A negative number counts from the last axis. Must not be
  // the batch axis.
  int64_t axis = -1;
  double epsilon = 1e-3;  // Added to the variance.
  bool center = true;     // Adds beta.
  bool scale = true;      // Multiplies by gamma.
  Initializer beta_initializer = Zeros();
  Initializer gamma_initializer = Ones();
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = "";
};

// For each example and each group of channels:
//
//   y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
//
// The mean and variance are over the channels of the group and all other axes
// except the batch. They are computed in float32 or wider. The result for an
// example does not depend on the rest of the batch, so it is the same for any
// number of replicas.
//
// Input and output: [batch, ...] of rank 2 or more. All extents except the
// batch must be known. Weights: gamma [channels] if `scale`, beta [channels] if
// `center`; float32.
//
// Source: Wu and He, "Group Normalization", 2018 (arXiv:1803.08494);
// keras.layers.GroupNormalization.
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
  // Returns `shape` with the extent of `axis` split into groups and channels
  // per group. Empty if the extent is not divisible.
  std::vector<int64_t> Divide(const Shape& shape, int axis) const;

  GroupNormalizationOptions options_;
  Weight gamma_;
  Weight beta_;
};

// Equivalent to: keras.layers.GroupNormalization.
LayerPtr GroupNormalization(const GroupNormalizationOptions& options = {});

namespace internal {

// Returns the axis counted from the front; 0 if it is not an axis of one
// example.
int FeatureAxis(int64_t axis, int rank);

}  // namespace internal
}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_GROUP_NORMALIZATION_H_
