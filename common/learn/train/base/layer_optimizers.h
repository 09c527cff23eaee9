#ifndef COMMON_LEARN_TRAIN_BASE_LAYER_OPTIMIZERS_H_
#define COMMON_LEARN_TRAIN_BASE_LAYER_OPTIMIZERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/variables/variable_store.h"
#include "common/learn/nn/minimize.h"
#include "common/learn/nn/weight.h"

namespace muster {

// The optimizer of some of a model's layers.
struct LayerOptimizer {
  // The path of a layer or of a model in the model, such as "backbone" or
  // "backbone/conv1", or the name of a weight, such as "head/bias".
  std::string prefix;
  Optimizer optimizer;
};

// The optimizers of a model: one for each weight. A value.
class ModelOptimizers {
 public:
  ModelOptimizers() = default;
  // `by_layer`: of the weights whose names begin with a prefix, or are it; of
  // several, the longest counts. The others have `optimizer`.
  ModelOptimizers(Optimizer optimizer, std::vector<LayerOptimizer> by_layer);

  //   kInvalidArgument  there are optimizers of layers and none for the other
  //                     weights; a prefix is empty, ends with "/", or occurs
  //                     twice; or an optimizer of layers has no rule
  //                     or a loss scale
  absl::Status Check() const;

  // `weights`: all of the model's.
  //   kInvalidArgument  a prefix is that of no trainable weight; says why, and
  //                     names the weights or layers that there are
  absl::Status CheckMatch(absl::Span<const Weight> weights) const;

  const Optimizer& Of(absl::string_view weight) const;

  // How a gradient is clipped: with global_clipnorm, all those that have the
  // same optimizer together.
  ClippingOfWeight clipping() const;

  // True if any of them keeps moving averages.
  bool use_ema() const;

  // Sets the optimizers of these weights, whether they exist or not. Also
  // checks that the store can use those that none of them has. If it fails,
  // weights of some of the optimizers may have theirs.
  //   as VariableStore::SetOptimizerOf()
  absl::Status SetIn(VariableStore& variables,
                     absl::Span<const std::string> weights) const;

 private:
  // Of by_layer_; -1 if it has the default.
  int IndexOf(absl::string_view weight) const;

  Optimizer default_;
  std::vector<LayerOptimizer> by_layer_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_LAYER_OPTIMIZERS_H_
