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
  // The path of a layer or a nested model, such as "backbone" or
  // "backbone/conv1", or the name of a weight, such as "head/bias".
  std::string prefix;
  Optimizer optimizer;
};

// The optimizers of a model: one for each weight. A value.
class ModelOptimizers {
 public:
  ModelOptimizers() = default;
  // Each entry of `by_layer` is used for the weights whose names are its prefix
  // or begin with it as a path. If several prefixes match, the longest is used.
  // `optimizer` is used for the other weights.
  ModelOptimizers(Optimizer optimizer, std::vector<LayerOptimizer> by_layer);

  //   kInvalidArgument  there are optimizers of layers but none for the other
  //                     weights; a prefix is empty, begins or ends with "/", or
  //                     occurs twice; or an optimizer of layers has no rule, or
  //                     has a loss scale
  absl::Status Check() const;

  // `weights` are all weights of the model.
  //   kInvalidArgument  a prefix matches no trainable weight; says why, and
  //                     names existing weights or layers
  absl::Status CheckMatch(absl::Span<const Weight> weights) const;

  const Optimizer& Of(absl::string_view weight) const;

  // Returns how gradients are clipped. With global_clipnorm, the gradients of
  // all weights with the same optimizer are clipped together.
  ClippingOfWeight clipping() const;

  // True if any of the optimizers keeps moving averages.
  bool use_ema() const;

  // Sets the optimizers of these weights, which need not exist. Also checks
  // that the store supports optimizers that no weight uses. After a failure,
  // the optimizers of some weights may have been set.
  //   errors  of VariableStore::SetOptimizerOf()
  absl::Status SetIn(VariableStore& variables,
                     absl::Span<const std::string> weights) const;

 private:
  // Returns the index in by_layer_, or -1 if the weight uses the default.
  int IndexOf(absl::string_view weight) const;

  Optimizer default_;
  std::vector<LayerOptimizer> by_layer_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_LAYER_OPTIMIZERS_H_
