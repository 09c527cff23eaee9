#ifndef COMMON_LEARN_NN_LOSS_OPTIONS_H_
#define COMMON_LEARN_NN_LOSS_OPTIONS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"

namespace muster {

// The options of losses that have no hyperparameters of their own.
struct LossOptions {
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};

// Helpers of the formulas of losses.
namespace internal {

// keras.config.epsilon()
inline constexpr double kEpsilon = 1e-7;

// Lists the hyperparameter "reduction".
void VisitReduction(ConfigVisitor& visitor, Reduction& reduction);

// Returns the mean over the last axis. Predictions of rank 1 have no axis of
// features and are returned unchanged.
Value MeanOfFeatures(Value x);

// Returns x clipped to [kEpsilon, 1 - kEpsilon].
Value ClipProbabilities(Value x);

// Returns whether `y_pred` has a known number of classes. Reports
// kInvalidArgument to the builder, with the name of the loss, if not.
bool HasClasses(Value y_pred, absl::string_view loss);

// Returns x / |x|_2 along `axis`. Vectors shorter than kEpsilon are divided by
// kEpsilon, so that the gradient of a vector of zeros is finite. Equivalent to:
// keras.ops.normalize.
Value NormalizeL2(Value x, int64_t axis);

}  // namespace internal
}  // namespace muster

#endif  // COMMON_LEARN_NN_LOSS_OPTIONS_H_
