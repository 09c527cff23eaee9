#ifndef COMMON_LEARN_NN_CIRCLE_LOSS_H_
#define COMMON_LEARN_NN_CIRCLE_LOSS_H_

#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"

namespace muster {

struct CircleOptions {
  double gamma = 80;
  double margin = 0.4;
  // An example is no pair with itself.
  bool remove_diagonal = true;
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};

// Brings embeddings of equal labels together and those of different labels
// apart. Of example i, with the distance d = max(1 - x_i . x_j, 0) to each
// other example j of the batch:
//
//   p = log(sum over equal labels of
//           exp(-gamma * (margin + d) * (margin - d)))
//   n = log(sum over different labels of
//           exp(gamma * max(1 + margin - d, 0) * (1 - margin - d)))
//   loss = log(1 + exp(p + n))
//
// Labels are class numbers [batch] or [batch, 1], predictions embeddings of
// length 1 [batch, size] (UnitNormalization). A mean is one over the examples
// with a loss above 0: one without an equal label, or without a different one,
// does not count. Replicas that train in sync pair the examples of their own
// part of the batch.
//
// Reported to the builder: kInvalidArgument for other shapes.
//
// Source: Sun et al., "Circle Loss", 2020 (arXiv:2002.10857);
// keras.losses.Circle.
Loss Circle(const CircleOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_CIRCLE_LOSS_H_
