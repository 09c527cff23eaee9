#include <cstdint>

#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"

namespace muster {
namespace {

HloValue LogProbabilities(const HloValue& logits) {
  const int64_t classes = logits.rank() - 1;
  const HloValue shifted =
      logits - ReduceKeepingAxes(HloReduction::kMax, logits, {classes});
  return shifted -
         Log(ReduceKeepingAxes(HloReduction::kSum, Exp(shifted), {classes}));
}

HloValue WithLastAxis(const HloValue& x) {
  Shape shape = x.shape();
  shape.InsertDim(shape.rank(), 1);
  return Reshape(x, shape);
}

// Returns the labels as probabilities of the classes of `logits`.
HloValue DenseLabels(const HloValue& labels, const HloValue& logits) {
  if (labels.type.is_float()) return labels;
  const HloValue classes = labels.builder->Iota(
      {labels.type.element, logits.shape()}, logits.rank() - 1);
  return Convert(Compare("EQ", classes, WithLastAxis(labels)),
                 logits.type.element);
}

}  // namespace

HloValue SoftmaxCrossEntropyToHlo(const HloNode& node) {
  const HloValue& logits = node.input(0);
  const HloValue labels = DenseLabels(node.input(1), logits);
  const HloValue terms = LogProbabilities(logits) * labels;
  // 0 times a class without probability is 0.
  const HloValue chosen =
      node.input(1).type.is_float()
          ? terms
          : Select(Compare("NE", labels, 0), terms, FilledLike(terms, 0));
  return -Reduce(HloReduction::kSum, chosen, {logits.rank() - 1});
}

HloValue SoftmaxCrossEntropyGradToHlo(const HloNode& node) {
  const HloValue& logits = node.input(0);
  return (Exp(LogProbabilities(logits)) - DenseLabels(node.input(1), logits)) *
         WithLastAxis(node.input(2));
}

HloValue SigmoidCrossEntropyToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  return Maximum(x, FilledLike(x, 0)) - x * node.input(1) + Log1p(Exp(-Abs(x)));
}

}  // namespace muster
