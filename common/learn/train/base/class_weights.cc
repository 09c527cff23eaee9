#include "common/learn/train/base/class_weights.h"

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// Limits the size of the table of weights.
constexpr int64_t kClassMax = int64_t{1} << 20;

Value ClassNumbers(Value labels) {
  const Shape& shape = labels.shape();
  if (shape.rank() > 1) {
    labels =
        shape.dims().back() == 1 ? Squeeze(labels, {-1}) : ArgMax(labels, -1);
  }
  if (!labels.ok()) return labels;
  if (IsFloating(labels.dtype())) labels = Round(labels);
  return labels.dtype() == DType::kInt64 ? labels : Cast(labels, DType::kInt64);
}

}  // namespace

absl::Status CheckClassWeights(const ClassWeights& weights) {
  for (const auto& [label, weight] : weights) {
    const bool is_sane = label >= 0 && label <= kClassMax &&
                         std::isfinite(weight) && weight >= 0;
    if (is_sane) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("class_weight: class ", label, " has weight ", weight,
                     "; expected classes from 0 to ", kClassMax,
                     " and finite weights, not negative"));
  }
  return absl::OkStatus();
}

Value WeightsOfLabels(Value labels, const ClassWeights& weights) {
  if (!labels.ok()) return labels;
  Value classes = ClassNumbers(labels);
  if (!classes.ok()) return classes;
  // The last entry is the weight of all other labels.
  const int64_t others = weights.empty() ? 0 : weights.rbegin()->first + 1;
  Tensor table(DType::kFloat32, {others + 1});
  for (float& weight : table.mutable_flat<float>()) weight = 1;
  for (const auto& [label, weight] : weights) {
    table.mutable_flat<float>()[label] = static_cast<float>(weight);
  }
  const auto last = static_cast<double>(others);
  classes = Select(LogicalOr(classes<0.0, classes> last),
                   ZerosLike(classes) + last, classes);
  return Gather(labels.builder()->Constant(table), classes);
}

}  // namespace muster
