#include "common/learn/nn/layers/merge.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"

namespace muster {
namespace {

Value Merge(MergeFunction function, Value a, Value b) {
  switch (function) {
    case MergeFunction::kAdd:
    case MergeFunction::kAverage:
      return a + b;
    case MergeFunction::kSubtract:
      return a - b;
    case MergeFunction::kMultiply:
      return a * b;
    case MergeFunction::kMaximum:
      return Maximum(a, b);
    case MergeFunction::kMinimum:
      return Minimum(a, b);
  }
  return Value();
}

// Returns the mask of `x`, broadcast over the last axis; a poisoned value if no
// position is masked.
Value ElementMask(Value x, const Masks& masks) {
  const Value mask = masks.Find(x);
  const bool fits = mask.ok() && mask.shape().rank() == x.shape().rank() - 1;
  return fits ? ExpandDims(mask, -1) : Value();
}

Value SelectIf(Value mask, Value x, Value otherwise) {
  return mask.ok() ? Select(mask, x, otherwise) : x;
}

// The product of what is not masked; 0 where all is.
Value MaskedProduct(absl::Span<const Value> inputs, const Masks& masks,
                    Value counted) {
  Value product;
  for (const Value& input : inputs) {
    const Value factor =
        SelectIf(ElementMask(input, masks), input, OnesLike(input));
    product = product.ok() ? product * factor : factor;
  }
  const bool fits = counted.ok() && product.ok() &&
                    counted.shape().rank() == product.shape().rank() - 1;
  if (!fits) return product;
  return Select(ExpandDims(counted, -1), product, ZerosLike(product));
}

// Where one side is masked, the other one stands for it.
Value MaskedExtreme(MergeFunction function, absl::Span<const Value> inputs,
                    const Masks& masks) {
  Value extreme = inputs.front();
  Value counted = ElementMask(extreme, masks);
  for (Value input : inputs.subspan(1)) {
    const Value mask = ElementMask(input, masks);
    input = SelectIf(mask, input, extreme);
    extreme = SelectIf(counted, extreme, input);
    extreme = Merge(function, extreme, input);
    counted = mask.ok() && counted.ok() ? LogicalOr(counted, mask) : Value();
  }
  return extreme;
}

// Returns the positions that are unmasked in at least one input. A poisoned
// value if these are all.
Value CountedInAny(absl::Span<const Value> inputs, const Masks& masks) {
  Value any = masks.Find(inputs.front());
  for (const Value& input : inputs.subspan(1)) {
    const Value mask = masks.Find(input);
    if (!any.ok() || !mask.ok()) return Value();
    any = LogicalOr(any, mask);
  }
  return any;
}

// Returns the mask of `x`, or an all-true mask if it has none.
Value MaskOrAll(Value x, const Masks& masks) {
  const Value mask = masks.Find(x);
  if (mask.ok()) return mask;
  const int rank = x.shape().rank();
  std::vector<int64_t> extents(rank, -1);
  extents.back() = 1;
  const Value first = Slice(x, std::vector<int64_t>(rank, 0), extents);
  return Equal(OnesLike(Squeeze(first, {-1})), 1.0);
}

}  // namespace

std::string MergeLayer::kind() const {
  switch (function_) {
    case MergeFunction::kAdd:
      return "Add";
    case MergeFunction::kSubtract:
      return "Subtract";
    case MergeFunction::kMultiply:
      return "Multiply";
    case MergeFunction::kAverage:
      return "Average";
    case MergeFunction::kMaximum:
      return "Maximum";
    case MergeFunction::kMinimum:
      return "Minimum";
  }
  return "Merge";
}

std::vector<Value> MergeLayer::CallMany(absl::Span<const Value> inputs,
                                        const CallContext& context) {
  const bool takes_two = function_ == MergeFunction::kSubtract;
  if (inputs.size() < 2 || (takes_two && inputs.size() > 2)) {
    inputs.front().builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(kind(), " ", name(), ": expected ",
                     takes_two ? "two inputs" : "two inputs or more", ", got ",
                     inputs.size())));
    return {Value()};
  }
  const Value counted = CountedInAny(inputs, *context.masks);
  const Value merged = Merged(inputs, *context.masks, counted);
  context.masks->Set(merged, counted);
  return {merged};
}

Value MergeLayer::Merged(absl::Span<const Value> inputs, const Masks& masks,
                         Value counted) const {
  if (function_ == MergeFunction::kMaximum ||
      function_ == MergeFunction::kMinimum) {
    return MaskedExtreme(function_, inputs, masks);
  }
  if (function_ == MergeFunction::kMultiply) {
    return MaskedProduct(inputs, masks, counted);
  }
  Value merged = inputs.front();
  for (const Value& input : inputs.subspan(1)) {
    merged = Merge(function_, merged, input);
  }
  if (function_ != MergeFunction::kAverage) return merged;
  return merged / static_cast<double>(inputs.size());
}

LayerPtr Add(const MergeOptions& options) {
  return std::make_shared<MergeLayer>(MergeFunction::kAdd, options);
}

LayerPtr Subtract(const MergeOptions& options) {
  return std::make_shared<MergeLayer>(MergeFunction::kSubtract, options);
}

LayerPtr Multiply(const MergeOptions& options) {
  return std::make_shared<MergeLayer>(MergeFunction::kMultiply, options);
}

LayerPtr Average(const MergeOptions& options) {
  return std::make_shared<MergeLayer>(MergeFunction::kAverage, options);
}

LayerPtr Maximum(const MergeOptions& options) {
  return std::make_shared<MergeLayer>(MergeFunction::kMaximum, options);
}

LayerPtr Minimum(const MergeOptions& options) {
  return std::make_shared<MergeLayer>(MergeFunction::kMinimum, options);
}

void ConcatenateLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("axis", axis_);
}

std::vector<Value> ConcatenateLayer::CallMany(absl::Span<const Value> inputs,
                                              const CallContext& context) {
  const Value joined = Concat(inputs, axis_);
  if (joined.ok()) context.masks->Set(joined, MaskOf(inputs, *context.masks));
  return {joined};
}

Value ConcatenateLayer::MaskOf(absl::Span<const Value> inputs,
                               const Masks& masks) const {
  bool has_mask = false;
  for (const Value& input : inputs) {
    const Value mask = masks.Find(input);
    if (!mask.ok()) continue;
    has_mask = true;
    if (mask.shape().rank() != input.shape().rank() - 1) return Value();
  }
  if (!has_mask) return Value();
  const int rank = inputs.front().shape().rank();
  const int64_t axis = axis_ < 0 ? axis_ + rank : axis_;
  if (axis == rank - 1) return CountedInAny(inputs, masks);
  std::vector<Value> each;
  for (const Value& input : inputs) each.push_back(MaskOrAll(input, masks));
  return Concat(each, axis);
}

LayerPtr Concatenate(const ConcatenateOptions& options) {
  return std::make_shared<ConcatenateLayer>(options);
}

}  // namespace muster
