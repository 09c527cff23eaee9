#include "common/learn/nn/average_loss.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

using internal::AlignWeights;
using internal::HasWeights;

Value Refuse(Value value, absl::string_view why) {
  value.builder()->ReportError(
      absl::InvalidArgumentError(absl::StrCat("ComputeAverageLoss: ", why)));
  return value.builder()->ValueOf(NodeOutput());
}

// The examples of all replicas, at least 1.
Value CountExamples(Value losses) {
  const Value count = AllReduce(CountAlong(losses, {0}), "sum");
  return Cast(Maximum(count, 1.0), losses.dtype());
}

}  // namespace

Value ComputeAverageLoss(Value per_example, const AverageLossOptions& options) {
  if (!per_example.ok()) return per_example;
  if (!IsFloating(per_example.dtype()) || per_example.shape().rank() == 0) {
    return Refuse(per_example,
                  absl::StrCat("expected losses of examples, floats [batch, "
                               "...], got ",
                               per_example.type().ToString(),
                               "; a Loss gives them with Reduction::kNone"));
  }
  if (options.global_batch_size.value_or(1) < 1) {
    return Refuse(per_example, absl::StrCat("global_batch_size is ",
                                            *options.global_batch_size,
                                            "; expected at least 1"));
  }
  Value losses = per_example;
  if (HasWeights(options.sample_weight)) {
    losses = losses * AlignWeights(options.sample_weight, losses);
  }
  if (!options.global_batch_size.has_value()) {
    return Sum(losses) / CountExamples(losses);
  }
  return Sum(losses) / static_cast<double>(*options.global_batch_size);
}

Value ScaleRegularizationLoss(Value loss) {
  if (!loss.ok()) return loss;
  return Sum(loss) / Cast(ReplicaCount(*loss.builder()), loss.dtype());
}

}  // namespace muster
