#ifndef COMMON_LEARN_NN_LAYERS_NORMALIZATION_H_
#define COMMON_LEARN_NN_LAYERS_NORMALIZATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/adaptable_layer.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct NormalizationOptions {
  // True: one mean and variance per feature of the last axis (Keras' axis=-1).
  // False: one for all (axis=None).
  bool per_feature = true;
  // Constants to use instead of the statistics of observed data. Give both or
  // neither.
  std::vector<float> mean = {};
  std::vector<float> variance = {};
  // Applies the inverse transformation.
  bool invert = false;
  std::string name = "";
};

//   y = (x - mean) / max(sqrt(variance), 1e-7)
//   y = x * max(sqrt(variance), 1e-7) + mean    if `invert`
//
// The mean and variance are those of the data passed to Observe() before the
// first call, unless given as options.
//
// Accepts any shape; the output has the shape of the input. Integers are
// converted to float32. Weights: mean and variance, not trainable, of shape
// [features], or [] without `per_feature`. None if mean and variance are given
// as options.
//
// Source: keras.layers.Normalization.
class NormalizationLayer : public AdaptableLayer {
 public:
  explicit NormalizationLayer(const NormalizationOptions& options = {});

  // Adds a batch, or any other part of the data, to the statistics.
  //   kInvalidArgument     `data` is not numeric, or has another number of
  //                        features than the data before
  //   kFailedPrecondition  the layer is built, or its mean was given as an
  //                        option
  absl::Status Observe(const Tensor& data) override;

  bool NeedsData() const override {
    return options_.mean.empty() && count_ == 0 && !built();
  }
  bool has_state_in_weights() const override { return true; }
  std::vector<Tensor> AdaptedState() const override;
  absl::Status SetAdaptedState(absl::Span<const Tensor> state) override;

  // The statistics of the data observed so far; float32 [features], or []
  // without `per_feature`.
  Tensor mean() const;
  Tensor variance() const;

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Precision precision() const override { return Precision::kFloat32; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  NormalizationOptions options_;
  // The axis of the features, as Keras' config has it; empty for None.
  std::vector<int64_t> axis_;
  // Running mean and sum of squared deviations (Welford). A sum of squares
  // would suffer from cancellation.
  int64_t count_ = 0;
  std::vector<double> mean_;
  std::vector<double> squares_;
  Weight mean_weight_;
  Weight variance_weight_;
};

// To call Observe() on the layer itself, make it with
// MakeLayer<NormalizationLayer>(options).
//
// Equivalent to: keras.layers.Normalization.
LayerPtr Normalization(const NormalizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_NORMALIZATION_H_
