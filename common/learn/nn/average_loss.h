#ifndef COMMON_LEARN_NN_AVERAGE_LOSS_H_
#define COMMON_LEARN_NN_AVERAGE_LOSS_H_

#include <cstdint>
#include <optional>

#include "common/compute/graph/graph_builder.h"

// Losses for custom training loops on replicas that train in sync. There,
// gradients are summed over the replicas; so that the sum is the gradient of
// the mean over the global batch, each replica divides what its examples lose
// by the number of examples of all.
namespace muster {

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

#endif  // COMMON_LEARN_NN_AVERAGE_LOSS_H_
