#include "common/learn/nn/recurrent/recurrent_layer.h"

#include <algorithm>
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

// Returns the mask of each time step, [batch, 1].
std::vector<Value> MaskTimes(Value mask, int64_t time_count) {
  std::vector<Value> times = Unstack(mask, time_count, 1);
  for (Value& time : times) time = ExpandDims(time, 1);
  return times;
}

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
  if (shape.rank() != 3 || shape.dim(1) == Shape::kUnknown ||
      shape.dim(1) < 1 || shape.dim(2) == Shape::kUnknown) {
    return refuse(
        "expected [batch, time, features] with a known number of time steps, "
        "at "
        "least one, and a known number of features");
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

std::vector<Value> RecurrentLayer::ProjectTimes(Value x,
                                                const CallContext& context) {
  const int64_t time_count = x.shape().dim(1);
  const int64_t width = x.shape().dim(2);
  // Time-major, so that each time step of the projection is contiguous.
  x = Transpose(x, {1, 0, 2});
  if (context.training && sequence_options_.dropout > 0) {
    const Value first = Squeeze(Slice(x, {0, 0, 0}, {1, -1, -1}), {0});
    x = x * DropoutScale(first, sequence_options_.dropout, 0, context);
  }
  const Value projected = Project(Reshape(x, {-1, width}));
  const int64_t columns = projected.ok() ? projected.shape().dims().back() : 1;
  std::vector<Value> times =
      Unstack(Reshape(projected, {time_count, -1, columns}), time_count, 0);
  if (sequence_options_.go_backwards) std::reverse(times.begin(), times.end());
  return times;
}

std::vector<Value> RecurrentLayer::CallMany(absl::Span<const Value> inputs,
                                            const CallContext& context) {
  Sequence sequence;
  if (!Parse(inputs, &sequence)) return std::vector<Value>(output_count());
  if (!IsFloating(sequence.x.dtype())) {
    sequence.x = Cast(sequence.x, compute_dtype());
  }
  if (!sequence.mask.ok()) sequence.mask = context.masks->Find(inputs[0]);
  const std::vector<Value> times = ProjectTimes(sequence.x, context);
  std::vector<Value> masks;
  if (sequence.mask.ok()) {
    masks = MaskTimes(sequence.mask, static_cast<int64_t>(times.size()));
    if (sequence_options_.go_backwards) {
      std::reverse(masks.begin(), masks.end());
    }
  }

  const Value zeros = ZerosLike(Slice(times[0], {0, 0}, {-1, units_}));
  States states = sequence.initial;
  if (states.empty()) states.assign(state_count(), zeros);
  Value recurrent_scale;
  const bool drops_output =
      context.training && sequence_options_.recurrent_dropout > 0;
  if (drops_output) {
    recurrent_scale =
        DropoutScale(zeros, sequence_options_.recurrent_dropout, 1, context);
  }

  ReadWeights();
  Value output = zeros;
  std::vector<Value> outputs;
  for (size_t t = 0; t < times.size(); ++t) {
    States before = states;
    if (drops_output) before[0] = before[0] * recurrent_scale;
    States after = Step(times[t], before);
    if (masks.empty()) {
      output = after[0];
    } else {
      output = Select(masks[t], after[0],
                      sequence_options_.zero_output_for_mask ? zeros : output);
      for (size_t i = 0; i < after.size(); ++i) {
        after[i] = Select(masks[t], after[i], states[i]);
      }
    }
    states = after;
    if (sequence_options_.return_sequences) outputs.push_back(output);
  }

  std::vector<Value> results = {
      sequence_options_.return_sequences ? Stack(outputs, 1) : output};
  if (sequence_options_.return_sequences) {
    context.masks->Set(results[0], sequence.mask);
  }
  if (sequence_options_.return_state) {
    results.insert(results.end(), states.begin(), states.end());
  }
  return results;
}

}  // namespace muster
