#ifndef COMMON_LEARN_NN_NORMALIZATION_H_
#define COMMON_LEARN_NN_NORMALIZATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct NormalizationOptions {
  // One mean and variance for each feature of the last axis (Keras' axis=-1),
  // or one for all (axis=None).
  bool per_feature = true;
  // Given, they are constants and no data is needed. Both or neither.
  std::vector<float> mean = {};
  std::vector<float> variance = {};
  // Undoes what the layer otherwise does.
  bool invert = false;
  std::string name = "";
};

// y = (x - mean) / max(sqrt(variance), 1e-7), or with `invert`
// y = x * max(sqrt(variance), 1e-7) + mean, with the mean and variance of the
// data that the layer has been shown before its first call.
//
// Any shape; the output has the input's. Integers become float32.
// Weights, not trained, unless mean and variance are given: mean and variance,
// [features], or [] without `per_feature`.
//
// Source: keras.layers.Normalization.
class NormalizationLayer : public Layer {
 public:
  explicit NormalizationLayer(const NormalizationOptions& options = {});

  // Takes a batch, or any part of the data, into mean and variance.
  //   kInvalidArgument     not numbers, or another number of features than in
  //                        the data before
  //   kFailedPrecondition  the layer is built, or its mean was given
  absl::Status Observe(const Tensor& data);

  // Whether the layer can be called only after Observe().
  bool NeedsData() const {
    return options_.mean.empty() && count_ == 0 && !built();
  }

  // Of the data so far; float32 [features], or [] for one for all.
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
  // Running mean and sum of squared distances from it, which do not cancel as
  // a sum of squares does.
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

#endif  // COMMON_LEARN_NN_NORMALIZATION_H_
