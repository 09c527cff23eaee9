#include "common/compute/ops/control_flow_gradients.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/control.h"
#include "common/compute/ops/control_flow.h"
#include "common/compute/ops/index_ops.h"
#include "common/core/tensor/dtype.h"

namespace muster::internal {
namespace {

using Values = std::vector<Value>;

void Append(const Values& from, Values* to) {
  to->insert(to->end(), from.begin(), from.end());
}

// Returns a node of the subgraph that is being traced for each value. Equal
// values have different nodes, so that each has its own gradient.
Values Copies(absl::Span<const Value> values) {
  Values copies;
  for (const Value& value : values) copies.push_back(Identity(value));
  return copies;
}

Values Pick(const Values& values, const std::vector<int>& positions) {
  Values picked;
  for (const int position : positions) picked.push_back(values[position]);
  return picked;
}

// Returns the positions of floating values in [begin, end).
std::vector<int> Floating(const Values& values, int begin, int end) {
  std::vector<int> positions;
  for (int i = begin; i < end; ++i) {
    if (IsFloating(values[i].dtype())) positions.push_back(i);
  }
  return positions;
}

// Returns the positions of the floating inputs that need a gradient.
std::vector<int> Wanted(const GradientContext& context, int begin, int end) {
  std::vector<int> positions = Floating(context.inputs, begin, end);
  std::erase_if(positions, [&](int i) { return !context.needs_gradient[i]; });
  return positions;
}

// Returns the positions of outputs in [begin, end) that a gradient has reached.
std::vector<int> Reached(const GradientContext& context, int begin, int end) {
  std::vector<int> positions;
  for (int i = begin; i < end; ++i) {
    if (context.output_gradients[i].ok()) positions.push_back(i);
  }
  return positions;
}

// Returns the gradient of an output; zeros if none has reached it.
Value GradientOf(const GradientContext& context, int output) {
  const Value gradient = context.output_gradients[output];
  return gradient.ok() ? gradient : ZerosLike(context.outputs[output]);
}

Values Differentiate(const GradientContext& context, const Values& targets,
                     const Values& target_gradients, const Values& sources) {
  const auto is_poisoned = [](Value value) { return !value.ok(); };
  for (const Values* values : {&targets, &target_gradients, &sources}) {
    const auto found =
        std::find_if(values->begin(), values->end(), is_poisoned);
    if (found != values->end()) return Values(sources.size(), *found);
  }
  return context.differentiate(targets, target_gradients, sources);
}

// The inputs and outputs of a loop.
struct Loop {
  const GradientContext& context;
  int carry_count;
  int input_count;  // Inputs of which an iteration gets a row.
  Values outputs;   // Including the kept carries.
  int first_kept;   // Index in the outputs.

  std::vector<int> carries = Floating(context.inputs, 0, carry_count);
  std::vector<int> inputs =
      Wanted(context, carry_count, carry_count + input_count);
  std::vector<int> captured = Wanted(context, carry_count + input_count,
                                     static_cast<int>(context.inputs.size()));
  // The kept carries have gradients only in second derivatives.
  std::vector<int> kept = Reached(
      context, std::min<int>(first_kept, context.output_gradients.size()),
      static_cast<int>(context.output_gradients.size()));

  // Returns the initial carry of the backward loop: the gradients of the carry,
  // and the sums of the gradients of captured values.
  Values Init() const {
    Values init;
    for (const int carry : carries) init.push_back(GradientOf(context, carry));
    for (const int i : captured) init.push_back(ZerosLike(context.inputs[i]));
    return init;
  }

  // Returns the carry and the inputs of one iteration, and the captured values.
  Values Operands(const Values& carry, const Values& rows) const {
    Values operands = carry;
    Append(rows, &operands);
    operands.insert(operands.end(),
                    context.inputs.begin() + carry_count + input_count,
                    context.inputs.end());
    return Copies(operands);
  }

  // Differentiates one iteration. `gradients` is as Init(); `rows` are the
  // gradients of the outputs `reached` of the body; `kept_rows` are those of
  // the carry before the iteration. Returns the next gradients, and the
  // gradients of the inputs.
  ScanStep StepBack(const Graph& body, const Values& operands,
                    const Values& gradients, const std::vector<int>& reached,
                    const Values& rows, const Values& kept_rows) const {
    const Values results = context.builder.Inline(body, operands);
    Values targets = Pick(results, carries);
    Append(Pick(results, reached), &targets);
    Values target_gradients(gradients.begin(),
                            gradients.begin() + carries.size());
    Append(rows, &target_gradients);
    Values sources = Pick(operands, carries);
    Append(Pick(operands, captured), &sources);
    Append(Pick(operands, inputs), &sources);
    Values next = Differentiate(context, targets, target_gradients, sources);
    for (size_t i = 0; i < kept.size(); ++i) {
      const auto carry =
          std::find(carries.begin(), carries.end(), kept[i] - first_kept);
      Value& gradient = next[carry - carries.begin()];
      gradient = gradient + kept_rows[i];
    }
    for (size_t i = carries.size(); i < gradients.size(); ++i) {
      next[i] = gradients[i] + next[i];
    }
    const auto first_input = next.begin() + gradients.size();
    return {.carry = {next.begin(), first_input},
            .rows = {first_input, next.end()}};
  }

  void SetInputGradients(const Values& gradients, const Values& rows,
                         GradientContext& result) const {
    const auto set = [&](const std::vector<int>& positions, auto from) {
      for (const int position : positions) {
        result.input_gradients[position] = *from++;
      }
    };
    set(carries, gradients.begin());
    set(captured, gradients.begin() + carries.size());
    set(inputs, rows.begin());
  }
};

// Returns the outputs of the node, with the values that its gradient needs.
Values OutputsWithSteps(const GradientContext& context, int kept_count) {
  if (context.node.attributes.GetOr("keep_steps", false)) {
    return context.outputs;
  }
  Attributes attributes = context.node.attributes;
  attributes.Set("keep_steps", true);
  Values outputs = context.builder.OpWithOutputs(
      context.node.op, context.inputs, attributes, context.node.subgraphs);
  outputs.resize(context.outputs.size() + kept_count,
                 context.builder.ValueOf(NodeOutput()));
  return outputs;
}

}  // namespace

void CondGradient(GradientContext& context) {
  const std::vector<int> wanted =
      Wanted(context, 1, static_cast<int>(context.inputs.size()));
  const std::vector<int> reached =
      Reached(context, 0, static_cast<int>(context.outputs.size()));
  const auto gradients_of = [&](int branch) {
    const Values arguments =
        Copies(absl::MakeConstSpan(context.inputs).subspan(1));
    const Values results =
        context.builder.Inline(*context.node.subgraphs[branch], arguments);
    Values operands = {context.inputs[0]};
    Append(arguments, &operands);
    return Differentiate(context, Pick(results, reached),
                         Pick(context.output_gradients, reached),
                         Pick(operands, wanted));
  };
  if (wanted.empty()) return;
  const Values gradients = Cond(
      context.inputs[0], [&] { return gradients_of(0); },
      [&] { return gradients_of(1); });
  for (size_t i = 0; i < wanted.size(); ++i) {
    context.input_gradients[wanted[i]] = gradients[i];
  }
}

void ScanGradient(GradientContext& context) {
  const Attributes& attributes = context.node.attributes;
  const Graph& body = *context.node.subgraphs[0];
  const int carry_count =
      static_cast<int>(attributes.GetOr<int64_t>("carry_count", 0));
  const int input_count =
      static_cast<int>(attributes.GetOr<int64_t>("input_count", 0));
  const int result_count = static_cast<int>(body.results.size());
  const Loop loop{.context = context,
                  .carry_count = carry_count,
                  .input_count = input_count,
                  .outputs = OutputsWithSteps(context, carry_count),
                  .first_kept = result_count};
  const std::vector<int> reached = Reached(context, carry_count, result_count);
  // The rows of an iteration, in this order.
  const auto kept = loop.outputs.begin() + result_count;
  const auto inputs = context.inputs.begin() + carry_count;
  Values rows(kept, loop.outputs.end());
  rows.insert(rows.end(), inputs, inputs + input_count);
  Append(Pick(context.output_gradients, reached), &rows);
  Append(Pick(context.output_gradients, loop.kept), &rows);
  const auto step_back = [&](const ScanStep& step) {
    auto next = step.rows.begin();
    const auto take = [&](size_t count) {
      const Values taken(next, next + count);
      next += count;
      return taken;
    };
    const Values carry = take(carry_count);
    const Values operands = loop.Operands(carry, take(input_count));
    const Values gradients = take(reached.size());
    return loop.StepBack(body, operands, step.carry, reached, gradients,
                         take(loop.kept.size()));
  };
  const ScanStep gradients =
      Scan(loop.Init(), rows, step_back,
           {.reverse = !attributes.GetOr("reverse", false),
            .length = attributes.GetOr<int64_t>("length", -1)});
  loop.SetInputGradients(gradients.carry, gradients.rows, context);
}

void WhileGradient(GradientContext& context) {
  const Attributes& attributes = context.node.attributes;
  const auto iterations_max =
      attributes.GetOr<int64_t>("maximum_iterations", -1);
  if (iterations_max < 0) {
    return context.builder.ReportError(absl::InvalidArgumentError(
        "a While without maximum_iterations cannot be differentiated: the "
        "limit bounds the memory for its iterations; set it, or use Scan"));
  }
  const int carry_count =
      static_cast<int>(attributes.GetOr<int64_t>("carry_count", 0));
  const Loop loop{.context = context,
                  .carry_count = carry_count,
                  .input_count = 0,
                  .outputs = OutputsWithSteps(context, carry_count + 1),
                  .first_kept = carry_count + 1};
  Values init = {loop.outputs[carry_count] - 1.0};
  Append(loop.Init(), &init);
  const auto step_back = [&](const Values& carry) {
    const Value iteration = carry[0];
    const auto rows_of = [&](const Values& stacks) {
      Values rows;
      for (const Value& stack : stacks) {
        rows.push_back(Gather(stack, iteration));
      }
      return rows;
    };
    const Values operands = loop.Operands(
        rows_of({loop.outputs.begin() + loop.first_kept, loop.outputs.end()}),
        {});
    const Values kept = rows_of(Pick(context.output_gradients, loop.kept));
    Values next = {iteration - 1.0};
    Append(loop.StepBack(*context.node.subgraphs[1], operands,
                         {carry.begin() + 1, carry.end()}, {}, {}, kept)
               .carry,
           &next);
    return next;
  };
  Values gradients =
      While(init, [](const Values& carry) { return carry[0] >= 0.0; },
            step_back, {.maximum_iterations = iterations_max});
  gradients.erase(gradients.begin());
  loop.SetInputGradients(gradients, {}, context);
}

}  // namespace muster::internal
