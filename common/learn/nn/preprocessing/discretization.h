#ifndef COMMON_LEARN_NN_PREPROCESSING_DISCRETIZATION_H_
#define COMMON_LEARN_NN_PREPROCESSING_DISCRETIZATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/adaptable_layer.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/preprocessing/category_output.h"
#include "common/learn/nn/preprocessing/quantile_summary.h"

namespace muster {

struct DiscretizationOptions {
  // Ascending.
  std::vector<double> bin_boundaries = {};
  // Instead: the layer observes data, and this many bins get equally many of
  // the numbers.
  std::optional<int64_t> num_bins = std::nullopt;
  // The error of the quantiles, as a share of the numbers.
  double epsilon = 0.01;
  // Not kTfIdf.
  CategoryOutput output_mode = CategoryOutput::kInt;
  std::string name = "";
};

// y = the bin of each number: how many of the boundaries are not above it. A
// NaN is in the last bin.
//
// Input: numbers of any shape, with the batch as the first axis. Output by
// output_mode, as EncodeCategories(): int32 of the input's shape, or float32
// vectors. No weights.
//
// Source: keras.layers.Discretization.
class DiscretizationLayer : public AdaptableLayer {
 public:
  explicit DiscretizationLayer(const DiscretizationOptions& options = {})
      : AdaptableLayer(options.name),
        options_(options),
        summary_(options.epsilon) {}

  const std::vector<double>& bin_boundaries() const {
    return options_.bin_boundaries;
  }

  void VisitConfig(ConfigVisitor& visitor) override;
  bool NeedsData() const override { return options_.bin_boundaries.empty(); }
  absl::Status Observe(const Tensor& data) override;
  absl::Status FinishObserving() override;
  std::vector<Tensor> AdaptedState() const override;
  absl::Status SetAdaptedState(absl::Span<const Tensor> state) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  DiscretizationOptions options_;
  QuantileSummary summary_;
};

// Equivalent to: keras.layers.Discretization.
LayerPtr Discretization(const DiscretizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_PREPROCESSING_DISCRETIZATION_H_
