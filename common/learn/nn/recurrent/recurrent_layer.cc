#include "common/learn/nn/recurrent/recurrent_layer.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/recurrent/carried_states.h"

namespace muster {

void RecurrentLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitUnits(visitor);
  visitor.Visit("return_sequences", sequence_options_.return_sequences);
  visitor.Visit(
      Described("return_state",
                "The last states as further outputs, \"name:1\" and so on."),
      sequence_options_.return_state);
  visitor.Visit("go_backwards", sequence_options_.go_backwards);
  visitor.Visit(
      Described(
          "zero_output_for_mask",
          "The output of a masked time step is 0, not the previous output."),
      sequence_options_.zero_output_for_mask);
  visitor.Visit(Described("stateful",
                          "The states continue in the next batch. Needs "
                          "Input.batch_size and one replica."),
                sequence_options_.stateful);
}

void RecurrentLayer::BuildMany(absl::Span<const Shape> inputs) {
  Build(inputs.front());
  if (!sequence_options_.stateful || inputs.front().rank() != 3) return;
  for (int i = 0; i < state_count(); ++i) {
    carried_.push_back(AddState(internal::CarriedStateName(i),
                                {inputs.front().dim(0), units_}));
  }
}

bool RecurrentLayer::Parse(absl::Span<const Value> inputs,
                           Sequence* sequence) const {
  const Value x = inputs[0];
  const auto refuse = [&](absl::string_view why) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(kind(), "(", units_, "): ", why, "; the input is ",
                     x.type().ToString())));
    return false;
  };
  const Shape& shape = x.shape();
  if (const std::string mistake = Mistake(); !mistake.empty()) {
    return refuse(mistake);
  }
  if (shape.rank() != 3 || shape.dim(1) == 0 ||
      shape.dim(2) == Shape::kUnknown) {
    return refuse(
        "expected [batch, time, features] with at least one time step and a "
        "known number of features");
  }
  sequence->x = x;
  inputs.remove_prefix(1);
  if (!inputs.empty() && inputs.back().dtype() == DType::kBool) {
    sequence->mask = inputs.back();
    inputs.remove_suffix(1);
    if (sequence->mask.shape().rank() != 2) {
      return refuse("expected a mask [batch, time]");
    }
  }
  sequence->initial.assign(inputs.begin(), inputs.end());
  if (inputs.empty() || static_cast<int>(inputs.size()) == state_count()) {
    return true;
  }
  return refuse(absl::StrCat("expected ", state_count(),
                             " initial states or none, got ", inputs.size()));
}

std::vector<Value> RecurrentLayer::CallMany(absl::Span<const Value> inputs,
                                            const CallContext& context) {
  Sequence sequence;
  if (!Parse(inputs, &sequence)) return std::vector<Value>(output_count());
  if (!sequence.mask.ok()) sequence.mask = context.masks->Find(inputs[0]);
  sequence.go_backwards = sequence_options_.go_backwards;
  sequence.zero_output_for_mask = sequence_options_.zero_output_for_mask;
  if (sequence.initial.empty()) {
    sequence.initial.assign(carried_.begin(), carried_.end());
  }
  const Value mask = sequence.mask;
  const RecurrenceOutputs outputs = Run(std::move(sequence), context);
  internal::Carry(outputs.last, carried_);

  std::vector<Value> results = {sequence_options_.return_sequences
                                    ? outputs.outputs
                                    : outputs.last_output};
  if (sequence_options_.return_sequences) {
    context.masks->Set(results[0], mask);
  }
  if (sequence_options_.return_state) {
    results.insert(results.end(), outputs.last.begin(), outputs.last.end());
  }
  return results;
}

}  // namespace muster
