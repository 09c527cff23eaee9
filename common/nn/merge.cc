#include "common/nn/merge.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/graph/graph_builder.h"
#include "common/nn/layer.h"
#include "common/ops/ops.h"

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
                                        const CallContext&) {
  const bool takes_two = function_ == MergeFunction::kSubtract;
  if (inputs.size() < 2 || (takes_two && inputs.size() > 2)) {
    inputs.front().builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(kind(), " ", name(), ": expected ",
                     takes_two ? "two inputs" : "two inputs or more", ", got ",
                     inputs.size())));
    return {Value()};
  }
  Value merged = inputs.front();
  for (const Value& input : inputs.subspan(1)) {
    merged = Merge(function_, merged, input);
  }
  if (function_ == MergeFunction::kAverage) {
    merged = merged / static_cast<double>(inputs.size());
  }
  return {merged};
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

std::vector<Value> ConcatenateLayer::CallMany(absl::Span<const Value> inputs,
                                              const CallContext&) {
  return {Concat(inputs, axis_)};
}

LayerPtr Concatenate(const ConcatenateOptions& options) {
  return std::make_shared<ConcatenateLayer>(options);
}

}  // namespace muster
