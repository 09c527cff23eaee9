#include "common/compute/ops/program_ops.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/control.h"
#include "common/compute/ops/random_ops.h"
#include "common/compute/ops/reduction.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/slice_ops.h"
#include "common/compute/ops/type_rules.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

using internal::TypesOr;

// The attributes of the op: the encoded program, and whether the op computes
// its gradient.
constexpr char kProgram[] = "program";
constexpr char kIsGradient[] = "is_gradient";

absl::StatusOr<Program> ProgramOf(const Attributes& attributes) {
  ASSIGN_OR_RETURN(const std::string encoded,
                   attributes.Get<std::string>(kProgram));
  return Program::Decode(encoded);
}

TypesOr ProgramRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const bool is_gradient,
                   arguments.attributes.Get<bool>(kIsGradient));
  ASSIGN_OR_RETURN(const Program program, ProgramOf(arguments.attributes));
  return program.InferOutputs(arguments.inputs, is_gradient);
}

// The gradient of a program that returns the gradients of its loss. Each row of
// output 0 has the loss.
void GradientOfLoss(GradientContext& context, const std::vector<int>& inputs) {
  const Value& rows = context.output_gradients[0];
  if (!rows.ok()) return;
  std::vector<int64_t> column(rows.shape().rank(), 1);
  column[0] = Shape::kUnknown;
  const Value factor =
      Sum(Slice(rows, std::vector<int64_t>(column.size(), 0), column));
  const size_t first = context.outputs.size() - inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& gradient = context.outputs[first + i];
    context.input_gradients[inputs[i]] =
        gradient * Cast(factor, gradient.dtype());
  }
}

void ProgramGradient(GradientContext& context) {
  const absl::StatusOr<Program> program = ProgramOf(context.node.attributes);
  if (!program.ok()) return context.builder.ReportError(program.status());
  const bool is_gradient =
      context.node.attributes.GetOr<bool>(kIsGradient, false);
  if (is_gradient || !program->gradient.has_value()) {
    return context.builder.ReportError(absl::UnimplementedError(
        absl::StrCat("program ", program->name, " was exported without ",
                     is_gradient ? "a second derivative" : "a gradient")));
  }
  if (program->gradient->is_of_loss) {
    return GradientOfLoss(context, program->gradient->inputs);
  }
  std::vector<Value> inputs = context.inputs;
  for (int i = 0; i < program->gradient->output_count; ++i) {
    const Value& gradient = context.output_gradients[i];
    inputs.push_back(gradient.ok() ? gradient : ZerosLike(context.outputs[i]));
  }
  const std::vector<Value> gradients = internal::ApplyWithOutputs(
      "Program", inputs,
      {{kProgram, *context.node.attributes.Get<std::string>(kProgram)},
       {kIsGradient, true}},
      static_cast<int>(program->gradient->inputs.size()));
  for (size_t i = 0; i < gradients.size(); ++i) {
    context.input_gradients[program->gradient->inputs[i]] = gradients[i];
  }
}

}  // namespace

std::vector<Value> RunProgram(absl::Span<const Value> inputs,
                              const Program& program) {
  return internal::ApplyWithOutputs(
      "Program", inputs, {{kProgram, program.Encode()}, {kIsGradient, false}},
      static_cast<int>(program.types.outputs.size()));
}

Value ProgramSeed(Value batch, int64_t data) {
  // One element of each row. Random numbers depend on the position of the row
  // in the global batch.
  std::vector<int64_t> size(batch.shape().rank(), 1);
  if (!size.empty()) size[0] = Shape::kUnknown;
  const Value rows =
      Slice(batch, std::vector<int64_t>(size.size(), 0), std::move(size));
  const Value seed = FoldInSeed(StepSeed(*batch.builder()), data);
  std::vector<Value> words;
  for (const int64_t word : {0, 1}) {
    const Value numbers = RandomUniformLike(FoldInSeed(seed, word), rows);
    // The sum of n numbers around 0 grows with the root of n, so the word is in
    // the range of int32 for all batches.
    constexpr double kScale = 1 << 20;
    words.push_back(Cast(Sum(numbers - 0.5) * kScale, DType::kInt32));
  }
  return Stack(words, 0);
}

namespace internal {

void RegisterProgramOps(OpRegistry* registry) {
  registry->Register({.name = "Program",
                      .input_count_max = OpSchema::kAnyCount,
                      .type_rule = ProgramRule,
                      .gradient_rule = ProgramGradient,
                      .reads = OpReads::kPlugin,
                      .low_precision = LowPrecisionPolicy::kDirect});
}

}  // namespace internal
}  // namespace muster
