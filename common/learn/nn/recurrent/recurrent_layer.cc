#include "common/learn/nn/recurrent/recurrent_layer.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"

namespace muster {
namespace {

bool IsRate(double rate) { return rate >= 0 && rate < 1; }

}  // namespace

void RecurrentLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("units", units_);
  visitor.Visit("dropout", sequence_options_.dropout);
  visitor.Visit("recurrent_dropout", sequence_options_.recurrent_dropout);
  visitor.Visit("return_sequences", sequence_options_.return_sequences);
  visitor.Visit("return_state", sequence_options_.return_state);
  visitor.Visit("go_backwards", sequence_options_.go_backwards);
  visitor.Visit("seed", sequence_options_.seed);
  visitor.Visit("zero_output_for_mask", sequence_options_.zero_output_for_mask);
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
  if (units_ < 1) return refuse("expected at least 1 unit");
  if (shape.rank() != 3 || shape.dim(1) == 0 ||
      shape.dim(2) == Shape::kUnknown) {
    return refuse(
        "expected [batch, time, features] with at least one time step and a "
        "known number of features");
  }
  if (!IsRate(sequence_options_.dropout) ||
      !IsRate(sequence_options_.recurrent_dropout)) {
    return refuse("dropout and recurrent_dropout must be in [0, 1)");
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

Value RecurrentLayer::DropoutScale(Value like, double rate, int64_t draw,
                                   const CallContext& context) const {
  const uint64_t seed =
      FoldIn(FoldIn(sequence_options_.seed != 0 ? sequence_options_.seed
                                                : context.seed,
                    path()),
             static_cast<uint64_t>(draw));
  const Value mask = DropoutMask(
      FoldInSeed(StepSeed(*like.builder()), static_cast<int64_t>(seed)), like,
      1 - rate);
  return Select(mask, OnesLike(like) * (1 / (1 - rate)), ZerosLike(like));
}

Value RecurrentLayer::DropInputs(Value x, const CallContext& context) const {
  if (!context.training || sequence_options_.dropout == 0) return x;
  const Value first = Slice(x, {0, 0, 0}, {-1, 1, -1});
  return x * DropoutScale(first, sequence_options_.dropout, 0, context);
}

std::vector<Value> RecurrentLayer::CallMany(absl::Span<const Value> inputs,
                                            const CallContext& context) {
  Sequence sequence;
  if (!Parse(inputs, &sequence)) return std::vector<Value>(output_count());
  if (!IsFloating(sequence.x.dtype())) {
    sequence.x = Cast(sequence.x, compute_dtype());
  }
  if (!sequence.mask.ok()) sequence.mask = context.masks->Find(inputs[0]);

  RecurrenceArguments arguments = Cell();
  arguments.units = units_;
  arguments.go_backwards = sequence_options_.go_backwards;
  arguments.zero_output_for_mask = sequence_options_.zero_output_for_mask;
  arguments.keep_steps = context.training;
  arguments.projected = Project(DropInputs(sequence.x, context));
  if (!arguments.projected.ok()) return std::vector<Value>(output_count());
  const Value zeros = ZerosLike(
      Squeeze(Slice(arguments.projected, {0, 0, 0}, {-1, 1, units_}), {1}));
  arguments.initial = sequence.initial;
  if (arguments.initial.empty()) {
    arguments.initial.assign(state_count(), zeros);
  }
  if (context.training && sequence_options_.recurrent_dropout > 0) {
    arguments.scale =
        DropoutScale(zeros, sequence_options_.recurrent_dropout, 1, context);
  }
  arguments.mask = sequence.mask;
  const RecurrenceOutputs outputs = Recurrence(arguments);

  std::vector<Value> results = {sequence_options_.return_sequences
                                    ? outputs.outputs
                                    : outputs.last_output};
  if (sequence_options_.return_sequences) {
    context.masks->Set(results[0], sequence.mask);
  }
  if (sequence_options_.return_state) {
    results.insert(results.end(), outputs.last.begin(), outputs.last.end());
  }
  return results;
}

}  // namespace muster
