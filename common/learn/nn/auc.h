#ifndef COMMON_LEARN_NN_AUC_H_
#define COMMON_LEARN_NN_AUC_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/learn/nn/metrics.h"

// The arithmetic of Auc().
// Sources: keras.metrics.AUC; for precision over recall Davis and Goadrich,
// "The Relationship Between Precision-Recall and ROC Curves", 2006.
namespace muster::internal {

// How many labels of each kind lie above and below each threshold.
struct ConfusionCounts {
  std::vector<double> true_positives;
  std::vector<double> false_positives;
  double positives = 0;
  double negatives = 0;
};

// `buckets` holds the weights of positive labels whose predictions lie in
// bucket i, above threshold i and not above threshold i + 1, then those of
// negative labels.
ConfusionCounts CountsFromBuckets(absl::Span<const double> buckets);

// `above` holds the weights of positive labels whose predictions lie above each
// threshold, of which the first is below all predictions, then those of
// negative labels.
ConfusionCounts CountsFromAbove(absl::Span<const double> above);

// The area as Keras' AUC.result() computes it.
double AreaUnderCurve(const ConfusionCounts& counts, AucCurve curve,
                      AucSummation summation);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_AUC_H_
