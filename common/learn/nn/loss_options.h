#ifndef COMMON_LEARN_NN_LOSS_OPTIONS_H_
#define COMMON_LEARN_NN_LOSS_OPTIONS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"

// Losses for custom training loops on replicas that train in sync. There,
// gradients are summed over the replicas; so that the sum is the gradient of
// the mean over the global batch, each replica divides what its examples lose
// by the number of examples of all.

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

struct AverageLossOptions {
  // The examples of all replicas in one step. Unset: they are counted, which
  // also finds out that a last batch is not full, and is one collective more.
  std::optional<int64_t> global_batch_size = std::nullopt;
  // Broadcasts against the losses: usually [batch]. None: each counts once.
  Value sample_weight = {};
};

// Sum(per_example) / global batch size, a scalar; 0 where there are no examples
// at all. `per_example` is what a Loss with Reduction::kNone gives: [batch,
// ...] of floats.
//
// Reported to the builder: a global batch size below 1, losses that are not
// floating or have no batch.
//
// Equivalent to: tf.nn.compute_average_loss().
Value ComputeAverageLoss(Value per_example,
                         const AverageLossOptions& options = {});

// Sum(loss) / replicas in sync: for terms that hang on the weights and not on
// examples, which every replica adds.
//
// Equivalent to: tf.nn.scale_regularization_loss().
Value ScaleRegularizationLoss(Value loss);

}  // namespace muster

#endif  // COMMON_LEARN_NN_LOSS_OPTIONS_H_
