#include "common/compute/stablehlo/step_program.h"

#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/runtime/variable_uses.h"
#include "common/compute/stablehlo/graph_translator.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

bool IsOnRead(const StepVariable& variable) {
  return variable.spec->synchronization() == proto::SYNCHRONIZATION_ON_READ;
}

absl::Status RefuseVariable(absl::string_view variable,
                            absl::string_view reason) {
  return absl::UnimplementedError(
      absl::StrCat("variable \"", variable, "\": ", reason));
}

HloValue SumOfSquares(const HloValue& x) {
  std::vector<int64_t> axes;
  for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  return Reduce(HloReduction::kSum, x * x, axes);
}

// Scales gradients whose norm is not within the limit.
HloValue ScaledToNorm(const HloValue& gradient, const HloValue& norm,
                      double limit) {
  return Select(Compare("LE", norm, limit), gradient,
                gradient * (limit / norm));
}

// The variables of a step that is translated.
class StepVariables final : public HloVariables {
 public:
  StepVariables(const HloStepContext* step, const StepProgramOptions* options,
                absl::Span<const StepVariable> variables)
      : step_(*step), options_(*options), variables_(variables) {
    for (size_t i = 0; i < variables.size(); ++i) {
      positions_[variables[i].spec->name()] = i;
    }
  }

  // Sets the values and slots of all variables, in order.
  void SetStates(const HloValue* states);
  // `all` is f32 [CoefficientCount()].
  void SetCoefficients(const HloValue& all);

  absl::StatusOr<HloValues> Translate(const Graph& graph, const Node& node,
                                      const HloValues& inputs) override;
  // Applies the gradients that share a norm.
  void ApplyHeld();
  // Appends the new states of the updated variables.
  void AddResults(HloValues* results) const;

 private:
  struct Held {
    size_t variable;
    GradientClipping clipping;
    HloGradient gradient;
  };

  bool reduces() const {
    return options_.replica_count > 1 && options_.divides_batch;
  }
  HloValue IsFirstReplica() const;
  HloValue Combined(const HloValue& gradient) const;
  absl::Status ApplyGradient(size_t variable, const Node& node,
                             const HloValues& inputs);
  absl::Status Assign(size_t variable, UpdateKind kind, const HloValue& value);
  absl::StatusOr<HloValue> Aggregated(const StepVariable& variable,
                                      const HloValue& value) const;
  void Apply(size_t variable, const HloGradient& gradient) {
    ApplyPasses(variables_[variable].rule, coefficients_[variable], gradient,
                &states_[variable]);
  }

  const HloStepContext& step_;
  const StepProgramOptions& options_;
  const absl::Span<const StepVariable> variables_;
  absl::flat_hash_map<std::string, size_t> positions_;
  std::vector<HloVariableState> states_;
  std::vector<HloValues> coefficients_;
  // The part of this replica in the examples of the step; without a builder if
  // gradients are summed.
  HloValue share_;
  std::vector<Held> held_;
};

void StepVariables::SetStates(const HloValue* states) {
  for (const StepVariable& variable : variables_) {
    HloVariableState& state = states_.emplace_back();
    state.value = *states++;
    for (size_t i = 0; i < variable.slots.size(); ++i) {
      state.slots.push_back(*states++);
    }
  }
}

void StepVariables::SetCoefficients(const HloValue& all) {
  int64_t next = 0;
  for (const StepVariable& variable : variables_) {
    const size_t count = PassCoefficients(variable.rule.passes).size();
    HloValues& scalars = coefficients_.emplace_back();
    for (size_t i = 0; i < count; ++i) {
      scalars.push_back(Reshape(Slice(all, {next++}, {1}), Shape()));
    }
  }
}

HloValue StepVariables::IsFirstReplica() const {
  return Compare(
      "EQ", step_.builder->Emit("stablehlo.replica_id", {}, {"ui32", Shape()}),
      step_.builder->Constant64("ui32", 0));
}

absl::StatusOr<HloValues> StepVariables::Translate(const Graph&,
                                                   const Node& node,
                                                   const HloValues& inputs) {
  if (node.op == "SetLossDenominator") {
    if (reduces()) {
      const HloValue total =
          AllReduce(HloReduction::kSum, inputs[0], options_.replica_count);
      share_ = Select(Compare("GT", total, 0), inputs[0] / total,
                      FilledLike(total, 0));
    }
    return HloValues{};
  }
  const size_t variable = positions_.at(VariableOf(node));
  if (node.op == kReadVariableOp) return HloValues{states_[variable].value};
  if (node.op == kGatherVariableOp) {
    return HloValues{GatherRows(states_[variable].value, inputs[0], 0)};
  }
  const UpdateKind kind = FindVariableUpdateOp(node.op)->kind;
  if (IsGradient(kind)) {
    RETURN_IF_ERROR(ApplyGradient(variable, node, inputs));
  } else if (TakesIndices(kind)) {
    return RefuseVariable(VariableOf(node),
                          absl::StrCat("updates of rows by ", node.op,
                                       " have no translation to StableHLO"));
  } else {
    RETURN_IF_ERROR(Assign(variable, kind, inputs[0]));
  }
  return HloValues{};
}

HloValue StepVariables::Combined(const HloValue& gradient) const {
  if (!reduces()) return gradient;
  return AllReduce(HloReduction::kSum,
                   share_.builder == nullptr ? gradient : gradient * share_,
                   options_.replica_count);
}

absl::Status StepVariables::ApplyGradient(size_t variable, const Node& node,
                                          const HloValues& inputs) {
  const StepVariable& described = variables_[variable];
  const std::string& name = described.spec->name();
  if (described.type.dtype != DType::kFloat32) {
    return RefuseVariable(
        name, absl::StrCat("it is ", DTypeName(described.type.dtype),
                           "; gradients of float32 variables only "
                           "have a translation to StableHLO"));
  }
  if (!node.attributes.GetOr<std::string>("loss_scale", "").empty()) {
    return RefuseVariable(name,
                          "scaled losses have no translation to StableHLO; use "
                          "bfloat16 without a loss scale");
  }
  if (described.spec->has_constraint()) {
    return RefuseVariable(name, "constraints have no translation to StableHLO");
  }
  HloGradient gradient;
  if (node.op == "ApplySparseGradient") {
    const HloType type = HloTypeOf(described.type);
    gradient.value = Combined(ScatterRows(type, inputs[1], inputs[0], 0));
    Shape rows = described.type.shape;
    for (int i = 1; i < rows.rank(); ++i) rows.set_dim(i, 1);
    Shape ones = inputs[1].shape();
    while (ones.rank() < inputs[0].rank()) ones.InsertDim(ones.rank(), 1);
    HloValue counts = ScatterRows({"f32", rows}, inputs[1],
                                  step_.builder->Constant({"f32", ones}, 1), 0);
    if (reduces()) {
      counts = AllReduce(HloReduction::kSum, counts, options_.replica_count);
    }
    gradient.rows = Compare("GT", counts, 0);
  } else {
    gradient.value = Combined(inputs[0]);
  }
  const auto limit = [&](absl::string_view attribute) {
    return node.attributes.GetOr<double>(attribute, 0.0);
  };
  const bool is_clipped = limit("clipvalue") > 0 || limit("clipnorm") > 0 ||
                          limit("global_clipnorm") > 0;
  if (is_clipped && described.rule.gradients_per_update > 1) {
    return RefuseVariable(name,
                          "clipping of accumulated gradients has no "
                          "translation to StableHLO; use one of the two");
  }
  if (limit("global_clipnorm") > 0) {
    held_.push_back(
        {variable,
         {.global_clipnorm = limit("global_clipnorm"),
          .norm_group = node.attributes.GetOr<int64_t>("norm_group", 0)},
         gradient});
    return absl::OkStatus();
  }
  if (limit("clipvalue") > 0) {
    const double bound = limit("clipvalue");
    gradient.value =
        Binary("stablehlo.minimum",
               Maximum(gradient.value, FilledLike(gradient.value, -bound)),
               FilledLike(gradient.value, bound));
  } else if (limit("clipnorm") > 0) {
    gradient.value = ScaledToNorm(
        gradient.value, sqrt(SumOfSquares(gradient.value)), limit("clipnorm"));
  }
  Apply(variable, gradient);
  return absl::OkStatus();
}

void StepVariables::ApplyHeld() {
  std::map<int64_t, HloValue> squares;
  for (const Held& held : held_) {
    const HloValue own = SumOfSquares(held.gradient.value);
    const auto [sum, is_first] = squares.emplace(held.clipping.norm_group, own);
    if (!is_first) sum->second = sum->second + own;
  }
  for (Held& held : held_) {
    held.gradient.value = ScaledToNorm(
        held.gradient.value, sqrt(squares.at(held.clipping.norm_group)),
        held.clipping.global_clipnorm);
    Apply(held.variable, held.gradient);
  }
}

absl::StatusOr<HloValue> StepVariables::Aggregated(
    const StepVariable& variable, const HloValue& value) const {
  if (options_.replica_count == 1) return value;
  const int count = options_.replica_count;
  switch (variable.spec->aggregation()) {
    case proto::AGGREGATION_SUM:
    case proto::AGGREGATION_MEAN: {
      if (!reduces()) return value;
      const HloValue sum = AllReduce(HloReduction::kSum, value, count);
      return variable.spec->aggregation() == proto::AGGREGATION_MEAN
                 ? sum / count
                 : sum;
    }
    case proto::AGGREGATION_ONLY_FIRST_REPLICA: {
      if (!reduces()) return value;
      const HloValue number =
          value.type.element == "i1" ? Convert(value, "i32") : value;
      const HloValue first =
          Select(IsFirstReplica(), number, FilledLike(number, 0));
      return Convert(AllReduce(HloReduction::kSum, first, count),
                     value.type.element);
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", variable.spec->name(),
          "\": every replica assigns to it, and it does not say how their "
          "values become one: set its aggregation to SUM, MEAN or "
          "ONLY_FIRST_REPLICA"));
  }
}

absl::Status StepVariables::Assign(size_t variable, UpdateKind kind,
                                   const HloValue& value) {
  const StepVariable& described = variables_[variable];
  HloValue operand = value;
  if (!IsOnRead(described)) {
    ASSIGN_OR_RETURN(operand, Aggregated(described, value));
  }
  HloValue& current = states_[variable].value;
  HloValue changed = operand;
  if (kind == UpdateKind::kAssignAdd) changed = current + operand;
  if (kind == UpdateKind::kAssignSub) changed = current - operand;
  // Each replica has computed the whole batch, which a sum contains once.
  const bool counts_once =
      options_.replica_count > 1 && !options_.divides_batch &&
      IsOnRead(described) &&
      described.spec->aggregation() == proto::AGGREGATION_SUM;
  if (counts_once) {
    const HloValue kept =
        kind == UpdateKind::kAssign ? FilledLike(current, 0) : current;
    changed = Select(IsFirstReplica(), changed, kept);
  }
  current = changed;
  return absl::OkStatus();
}

void StepVariables::AddResults(HloValues* results) const {
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!variables_[i].is_updated) continue;
    results->push_back(states_[i].value);
    results->insert(results->end(), states_[i].slots.begin(),
                    states_[i].slots.end());
  }
}

// Sums the results of the graph over the replicas.
absl::Status SumResults(int replica_count, HloValues* results) {
  for (HloValue& result : *results) {
    if (result.type.element == "i1") {
      return absl::InvalidArgumentError(absl::StrCat(
          "a result of the step is ", result.type.ToString(),
          "; results of replicas are summed, so they are numbers"));
    }
    result = AllReduce(HloReduction::kSum, result, replica_count);
  }
  return absl::OkStatus();
}

// The parameters of one step.
struct StepArguments {
  HloValues arguments;  // Of the graph.
  HloValues states;     // The values and slots of all variables.
  HloValue coefficients;
  HloValue seed;
};

// Writes one step and returns the results of the graph, followed by the states
// of the updated variables.
absl::StatusOr<HloValues> EmitStep(HloBuilder* builder, const Graph& typed,
                                   absl::Span<const StepVariable> variables,
                                   const StepProgramOptions& options,
                                   const StepArguments& given) {
  HloStepContext step = {
      .builder = builder,
      .step_seed = given.seed,
      .replica_count = options.divides_batch ? options.replica_count : 1};
  StepVariables translated(&step, &options, variables);
  translated.SetStates(given.states.data());
  translated.SetCoefficients(given.coefficients);
  step.example_offset = builder->Constant(Tensor::Scalar<int64_t>(0));
  if (step.replica_count > 1) {
    step.example_offset =
        Convert(builder->Emit("stablehlo.replica_id", {}, {"ui32", Shape()}),
                "i64") *
        static_cast<double>(options.rows_per_replica);
  }
  ASSIGN_OR_RETURN(HloValues results,
                   TranslateGraph(step, typed, given.arguments, &translated));
  translated.ApplyHeld();
  if (options.sums_results && step.replica_count > 1) {
    RETURN_IF_ERROR(SumResults(step.replica_count, &results));
  }
  translated.AddResults(&results);
  return results;
}

// The types of a program, for one step or for all steps of an execution.
struct ProgramTypes {
  std::vector<HloType> arguments;
  std::vector<HloType> states;
  // The position among the results of each state; kNoResult if no step changes
  // it.
  std::vector<int> state_results;
  HloType coefficients;
};

HloType Stacked(HloType type, int step_count) {
  if (step_count > 1) type.shape.InsertDim(0, step_count);
  return type;
}

ProgramTypes TypesOf(const Graph& typed,
                     absl::Span<const StepVariable> variables, int step_count) {
  ProgramTypes types;
  for (const int parameter : typed.parameters) {
    types.arguments.push_back(
        Stacked(HloTypeOf(typed.nodes[parameter].outputs[0]), step_count));
  }
  int64_t coefficient_count = 0;
  int result = static_cast<int>(typed.results.size());
  for (const StepVariable& variable : variables) {
    std::vector<TensorType> state = {variable.type};
    state.insert(state.end(), variable.slots.begin(), variable.slots.end());
    for (const TensorType& type : state) {
      types.states.push_back(HloTypeOf(type));
      types.state_results.push_back(
          variable.is_updated ? result++ : HloBuilder::kNoResult);
    }
    coefficient_count +=
        static_cast<int64_t>(PassCoefficients(variable.rule.passes).size());
  }
  types.coefficients = Stacked({"f32", {coefficient_count}}, step_count);
  return types;
}

// Adds the parameters of a program or of the body of its loop.
StepArguments AddParameters(const ProgramTypes& types, bool donates,
                            HloBuilder* builder) {
  StepArguments added;
  for (const HloType& type : types.arguments) {
    added.arguments.push_back(builder->AddParameter(type));
  }
  for (size_t i = 0; i < types.states.size(); ++i) {
    added.states.push_back(builder->AddParameter(
        types.states[i],
        donates ? types.state_results[i] : HloBuilder::kNoResult));
  }
  added.coefficients = builder->AddParameter(types.coefficients);
  added.seed = builder->AddParameter({"i64", Shape()});
  return added;
}

// Returns element `step` of `stacked` along the first axis.
HloValue AtStep(const HloValue& stacked, const HloValue& step) {
  std::vector<int64_t> sizes(stacked.shape().dims().begin(),
                             stacked.shape().dims().end());
  sizes[0] = 1;
  HloValues operands = {stacked, step};
  const HloValue zero = step.builder->Constant64("i64", 0);
  operands.resize(sizes.size() + 1, zero);
  const HloValue slice = step.builder->Emit(
      "stablehlo.dynamic_slice", operands,
      {stacked.type.element, Shape(absl::MakeConstSpan(sizes))},
      absl::StrCat("slice_sizes = ", HloArray(sizes)));
  return Reshape(slice, Shape(absl::MakeConstSpan(sizes).subspan(1)));
}

// Returns `stacked` with `value` as element `step` along the first axis.
HloValue WithStep(const HloValue& stacked, const HloValue& value,
                  const HloValue& step) {
  Shape shape = value.shape();
  shape.InsertDim(0, 1);
  HloValues operands = {stacked, Reshape(value, shape), step};
  const HloValue zero = step.builder->Constant64("i64", 0);
  operands.resize(stacked.shape().rank() + 2, zero);
  return step.builder->Emit("stablehlo.dynamic_update_slice", operands,
                            stacked.type);
}

// Writes the loop over the steps, whose state is: the parameters of the
// program, the results of the graph, and the number of the step.
absl::StatusOr<HloValues> EmitLoop(HloBuilder* builder, const Graph& typed,
                                   absl::Span<const StepVariable> variables,
                                   const StepProgramOptions& options,
                                   const ProgramTypes& types,
                                   const StepArguments& given) {
  const size_t result_count = typed.results.size();
  HloBuilder body("b");
  const StepArguments stacked = AddParameters(types, /*donates=*/false, &body);
  std::vector<HloType> result_types;
  HloValues results;
  for (const NodeOutput& result : typed.results) {
    result_types.push_back(
        Stacked(HloTypeOf(typed.TypeOf(result)), options.step_count));
    results.push_back(body.AddParameter(result_types.back()));
  }
  const HloValue step = body.AddParameter({"i64", Shape()});
  StepArguments of_step = {.states = stacked.states,
                           .coefficients = AtStep(stacked.coefficients, step),
                           .seed = stacked.seed + step};
  for (const HloValue& argument : stacked.arguments) {
    of_step.arguments.push_back(AtStep(argument, step));
  }
  ASSIGN_OR_RETURN(const HloValues computed,
                   EmitStep(&body, typed, variables, options, of_step));
  HloValues next = stacked.arguments;
  for (size_t i = 0; i < stacked.states.size(); ++i) {
    const int result = types.state_results[i];
    next.push_back(result == HloBuilder::kNoResult ? stacked.states[i]
                                                   : computed[result]);
  }
  next.push_back(stacked.coefficients);
  next.push_back(stacked.seed);
  for (size_t i = 0; i < result_count; ++i) {
    next.push_back(WithStep(results[i], computed[i], step));
  }
  next.push_back(step + body.Constant64("i64", 1));

  HloValues first = given.arguments;
  first.insert(first.end(), given.states.begin(), given.states.end());
  first.push_back(given.coefficients);
  first.push_back(given.seed);
  for (const HloType& type : result_types) {
    first.push_back(builder->Constant(type, 0));
  }
  first.push_back(builder->Constant64("i64", 0));
  HloBuilder condition("c");
  std::vector<HloType> state_types;
  HloValue last;
  for (const HloValue& value : first) {
    state_types.push_back(value.type);
    last = condition.AddParameter(value.type);
  }
  const HloValue continues = Compare(
      "LT", last,
      condition.Constant64("i64", static_cast<uint64_t>(options.step_count)));
  const HloValues ended =
      builder->EmitMany("stablehlo.while", first, state_types, "",
                        absl::StrCat(condition.BuildRegion({continues}), ", ",
                                     body.BuildRegion(next)));
  HloValues all(ended.end() - 1 - static_cast<int64_t>(result_count),
                ended.end() - 1);
  for (size_t i = 0; i < types.states.size(); ++i) {
    if (types.state_results[i] == HloBuilder::kNoResult) continue;
    all.push_back(ended[given.arguments.size() + i]);
  }
  return all;
}

}  // namespace

absl::StatusOr<std::string> MakeStepProgram(
    const Graph& typed, absl::Span<const StepVariable> variables,
    const StepProgramOptions& options) {
  RETURN_IF_ERROR(CheckTranslatable(typed));
  for (const StepVariable& variable : variables) {
    const absl::Status status = CheckPasses(variable.rule.passes);
    if (!status.ok()) {
      return RefuseVariable(variable.spec->name(), status.message());
    }
  }
  HloBuilder builder;
  const ProgramTypes types = TypesOf(typed, variables, options.step_count);
  const StepArguments given = AddParameters(types, /*donates=*/true, &builder);
  absl::StatusOr<HloValues> results =
      options.step_count == 1
          ? EmitStep(&builder, typed, variables, options, given)
          : EmitLoop(&builder, typed, variables, options, types, given);
  RETURN_IF_ERROR(results.status());
  return builder.Build("step", options.replica_count, *results);
}

}  // namespace muster
