#include "common/learn/train/callbacks/swap_ema_weights.h"

#include "absl/status/status.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/model.h"

namespace muster {
namespace {

// What the model has.
constexpr char kHasWeights[] = "weights";
constexpr char kHasAverages[] = "averages";

}  // namespace

void SwapEmaWeightsOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Describe("Evaluates with the averages of an optimizer with use_ema.");
  visitor.Visit("swap_on_epoch", swap_on_epoch);
}

absl::Status SwapEmaWeights::OnTrainBegin(Model& model) {
  weights_.clear();
  if (model.uses_ema()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "SwapEMAWeights: the optimizer keeps no averages; expected use_ema");
}

absl::Status SwapEmaWeights::OnTrainEnd(Model&, const Logs&) {
  // Fit() has assigned the averages.
  weights_.clear();
  return absl::OkStatus();
}

absl::Status SwapEmaWeights::OnEpochBegin(Model& model, int) {
  return options_.swap_on_epoch ? UseWeights(model) : absl::OkStatus();
}

absl::Status SwapEmaWeights::OnEpochEnd(Model& model, int, Logs&) {
  return options_.swap_on_epoch ? UseAverages(model) : absl::OkStatus();
}

absl::Status SwapEmaWeights::OnTestBegin(Model& model) {
  return UseAverages(model);
}

absl::Status SwapEmaWeights::OnTestEnd(Model& model, const Logs&) {
  return UseWeights(model);
}

CallbackState SwapEmaWeights::SaveState() const {
  return {.text = weights_.empty() ? kHasWeights : kHasAverages,
          .tensors = weights_};
}

absl::Status SwapEmaWeights::RestoreState(Model& model,
                                          const CallbackState& state) {
  weights_ = state.tensors;
  return UseWeights(model);
}

absl::Status SwapEmaWeights::UseAverages(Model& model) {
  if (!weights_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(weights_, model.GetWeights());
  return model.strategy()->variables().AssignAverages();
}

absl::Status SwapEmaWeights::UseWeights(Model& model) {
  if (weights_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(model.SetWeights(weights_));
  weights_.clear();
  return absl::OkStatus();
}

}  // namespace muster
