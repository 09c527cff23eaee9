#ifndef COMMON_LEARN_NN_CLASSIFICATION_LOSSES_H_
#define COMMON_LEARN_NN_CLASSIFICATION_LOSSES_H_

#include <cstdint>
#include <vector>

#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/loss_options.h"

// Losses of classes other than crossentropies: margins, divergence and overlap.
// Labels y and predictions x have one shape, [batch, ..., classes].
// Sources: https://keras.io/api/losses/hinge_losses/
//          https://keras.io/api/losses/probabilistic_losses/
namespace muster {

// max(1 - y * x, 0), and its square; means over the last axis. Labels are -1 or
// 1. If all labels of a replica's batch are 0 or 1, 0 counts as -1.
Loss Hinge(const LossOptions& options = {});
Loss SquaredHinge(const LossOptions& options = {});

// max(0, 1 + max((1 - y) * x) - sum(y * x)) over the last axis, for one-hot
// labels.
Loss CategoricalHinge(const LossOptions& options = {});

// sum(y * log(y / x)) over the last axis, with y and x clipped to [1e-7, 1].
Loss KLDivergence(const LossOptions& options = {});

struct DiceOptions {
  // The axes that are summed over. Empty: all of them, the batch too.
  std::vector<int64_t> axis = {};
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};
// 1 - 2 * sum(y * x) / (sum(y) + sum(x) + 1e-7).
//
// Without `axis` the loss of a batch is one number, of which replicas that
// train in sync take the mean. It then is not the loss of the global batch, and
// refuses masks. With `axis` = the axes of an example, each example counts by
// itself, and padding can be masked.
//
// Source: Milletari et al., "V-Net", 2016 (arXiv:1606.04797);
// keras.losses.Dice.
Loss Dice(const DiceOptions& options = {});

struct TverskyOptions {
  double alpha = 0.5;
  double beta = 0.5;
  std::vector<int64_t> axis = {};  // As Dice.
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};
// 1 - s / (s + alpha * sum(y * (1 - x)) + beta * sum((1 - y) * x) + 1e-7),
// where s = sum(y * x). The factors belong to these terms as in Keras' code;
// its documentation calls the first false positives. With 0.5 and 0.5, the loss
// is Dice().
//
// Source: Salehi et al., "Tversky Loss Function for Image Segmentation", 2017
// (arXiv:1706.05721); keras.losses.Tversky.
Loss Tversky(const TverskyOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_CLASSIFICATION_LOSSES_H_
