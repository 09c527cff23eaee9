#ifndef COMMON_LEARN_TRAIN_CALLBACKS_SWAP_EMA_WEIGHTS_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_SWAP_EMA_WEIGHTS_H_

#include <vector>

#include "absl/status/status.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"

namespace muster {

struct SwapEmaWeightsOptions {
  // Also from the end of each epoch to the beginning of the next one, so that
  // callbacks that save at the end of epochs save the averages.
  bool swap_on_epoch = false;

  void VisitConfig(ConfigVisitor& visitor);
};

// Evaluates with the moving averages of the weights that the optimizer keeps
// (OptimizerOptions::use_ema): validation in Fit(), and Evaluate(). Training
// continues with the weights that it had; this process keeps them meanwhile.
// When Fit() ends, the weights have the averages, with this callback and
// without.
//
// Checkpoints that are saved while the weights are swapped have the averages as
// the weights, and the weights with the state of this callback: training that
// resumes from them continues with those.
//
// Equivalent to: keras.callbacks.SwapEMAWeights.
class SwapEmaWeights final : public Callback {
 public:
  explicit SwapEmaWeights(SwapEmaWeightsOptions options = {})
      : options_(options) {}

  //   kFailedPrecondition  the optimizer keeps no averages
  //   others               as Model::GetWeights() and SetWeights()
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  absl::Status OnEpochBegin(Model& model, int epoch) override;
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override;
  absl::Status OnTestBegin(Model& model) override;
  absl::Status OnTestEnd(Model& model, const Logs& logs) override;
  bool watches_steps() const override { return false; }

  CallbackState SaveState() const override;
  //   kInvalidArgument  the weights are those of another model
  absl::Status RestoreState(Model& model, const CallbackState& state) override;

 private:
  absl::Status UseAverages(Model& model);
  absl::Status UseWeights(Model& model);

  const SwapEmaWeightsOptions options_;
  // While the model has the averages: what training continues with.
  std::vector<Tensor> weights_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_SWAP_EMA_WEIGHTS_H_
