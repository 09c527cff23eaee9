#include "common/learn/nn/recurrent/recurrent_units.h"

#include <cstdint>
#include <string>
#include <utility>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

bool IsRate(double rate) { return rate >= 0 && rate < 1; }

}  // namespace

void RecurrentUnits::VisitUnits(ConfigVisitor& visitor) {
  visitor.VisitPositive("units", units_);
  visitor.Visit("dropout", sequence_options_.dropout);
  visitor.Visit("recurrent_dropout", sequence_options_.recurrent_dropout);
  visitor.Visit("seed", sequence_options_.seed);
}

std::string RecurrentUnits::Mistake() const {
  if (units_ < 1) return "expected at least 1 unit";
  if (IsRate(sequence_options_.dropout) &&
      IsRate(sequence_options_.recurrent_dropout)) {
    return "";
  }
  return "dropout and recurrent_dropout must be in [0, 1)";
}

Value RecurrentUnits::DropoutScale(Value like, double rate, int64_t draw,
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

Value RecurrentUnits::DropInputs(Value x, const CallContext& context) const {
  if (!context.training || sequence_options_.dropout == 0) return x;
  const Value first = Slice(x, {0, 0, 0}, {-1, 1, -1});
  return x * DropoutScale(first, sequence_options_.dropout, 0, context);
}

RecurrenceOutputs RecurrentUnits::Run(Sequence sequence,
                                      const CallContext& context) {
  if (!IsFloating(sequence.x.dtype())) {
    sequence.x = Cast(sequence.x, compute_dtype());
  }
  RecurrenceArguments arguments = Cell();
  arguments.units = units_;
  arguments.go_backwards = sequence.go_backwards;
  arguments.zero_output_for_mask = sequence.zero_output_for_mask;
  arguments.keep_steps = context.training;
  arguments.projected = Project(DropInputs(sequence.x, context));
  if (!arguments.projected.ok()) {
    return {.last = States(state_count())};
  }
  const Value zeros = ZerosLike(
      Squeeze(Slice(arguments.projected, {0, 0, 0}, {-1, 1, units_}), {1}));
  arguments.initial = std::move(sequence.initial);
  if (arguments.initial.empty()) {
    arguments.initial.assign(state_count(), zeros);
  }
  if (context.training && sequence_options_.recurrent_dropout > 0) {
    arguments.scale =
        DropoutScale(zeros, sequence_options_.recurrent_dropout, 1, context);
  }
  arguments.mask = sequence.mask;
  return Recurrence(arguments);
}

}  // namespace muster
