#include "common/learn/nn/recurrent/unit_cell.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/layer.h"

namespace muster {

std::vector<Shape> UnitCell::StateShapes(const Shape&) const {
  return std::vector<Shape>(state_count(), Shape{units() < 1 ? 0 : units()});
}

RecurrenceOutputs UnitCell::CallOnSteps(const Steps& steps,
                                        const CallContext& context) {
  steps_ = &steps;
  std::vector<Value> outputs = CallAll({steps.x}, context);
  steps_ = nullptr;
  // {all outputs, the last one, the last states}, or poisoned.
  outputs.resize(2 + state_count());
  return {.outputs = outputs[0],
          .last_output = outputs[1],
          .last = {outputs.begin() + 2, outputs.end()}};
}

std::vector<Value> UnitCell::CallMany(absl::Span<const Value> inputs,
                                      const CallContext& context) {
  const std::vector<Value> poisoned(output_count());
  const auto refuse = [&](const std::string& why) {
    inputs[0].builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(kind(), "(", units(), "): ", why, "; the input is ",
                     inputs[0].type().ToString())));
    return poisoned;
  };
  if (const std::string mistake = Mistake(); !mistake.empty()) {
    return refuse(mistake);
  }
  const int rank = steps_ == nullptr ? 2 : 3;
  if (inputs[0].shape().rank() != rank ||
      inputs[0].shape().dims().back() == Shape::kUnknown) {
    return refuse("expected [batch, features] of a known number of features");
  }
  if (steps_ != nullptr) {
    const RecurrenceOutputs outputs =
        Run({.x = inputs[0],
             .initial = steps_->initial,
             .mask = steps_->mask,
             .go_backwards = steps_->go_backwards,
             .zero_output_for_mask = steps_->zero_output_for_mask},
            context);
    std::vector<Value> results = {outputs.outputs, outputs.last_output};
    results.insert(results.end(), outputs.last.begin(), outputs.last.end());
    return results;
  }
  if (static_cast<int>(inputs.size()) != 1 + state_count()) {
    return refuse(absl::StrCat("expected ", state_count(), " states, got ",
                               inputs.size() - 1));
  }
  const RecurrenceOutputs outputs =
      Run({.x = ExpandDims(inputs[0], 1),
           .initial = {inputs.begin() + 1, inputs.end()}},
          context);
  std::vector<Value> results = {outputs.last_output};
  results.insert(results.end(), outputs.last.begin(), outputs.last.end());
  return results;
}

}  // namespace muster
