#include "common/compute/programs/compiled/compiled_program.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/compute/programs/compiled/program_compiler.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// Longer than any step takes.
constexpr absl::Duration kRunTimeout = absl::Hours(1);

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledProgram>> CompiledProgram::Create(
    const Program& program, absl::Span<const TensorType> inputs,
    bool is_gradient, int thread_count) {
  ASSIGN_OR_RETURN(const int index, program.FindVariant(inputs, is_gradient));
  const Program::Variant& variant = program.variants[index];
  const std::string& module =
      is_gradient ? variant.gradient_stablehlo : variant.stablehlo;
  ASSIGN_OR_RETURN(auto client, internal::ProgramClient(thread_count));
  ASSIGN_OR_RETURN(auto executable, internal::CompileProgram(
                                        program.name, module, thread_count));
  const ProgramTypes types =
      is_gradient ? program.GradientTypes(variant.types) : variant.types;
  const int expected = static_cast<int>(types.outputs.size());
  if (executable->output_count() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "program ", program.name, " has ", executable->output_count(),
        " outputs; expected ", expected));
  }
  return absl::WrapUnique(new CompiledProgram(
      program.name, types.outputs, std::move(client), std::move(executable)));
}

absl::Status CompiledProgram::Run(absl::Span<const Tensor* const> inputs,
                                  absl::Span<Tensor* const> outputs) {
  // After a timeout the plugin may still read the inputs of that run.
  RETURN_IF_ERROR(timeout_);
  const absl::Status status = Execute(inputs, outputs);
  if (status.ok()) return status;
  const absl::Status named(
      status.code(), absl::StrCat("program ", name_, ": ", status.message()));
  if (absl::IsDeadlineExceeded(named)) timeout_ = named;
  return named;
}

absl::Status CompiledProgram::Execute(absl::Span<const Tensor* const> inputs,
                                      absl::Span<Tensor* const> outputs) {
  // The memory of the last run can be used for this one.
  for (Tensor* const output : outputs) *output = Tensor();
  std::vector<std::unique_ptr<PjrtBuffer>> buffers;
  std::vector<const PjrtBuffer*> pointers;
  for (const Tensor* const input : inputs) {
    ASSIGN_OR_RETURN(auto buffer, client_->CopyToDevice(*input));
    pointers.push_back(buffer.get());
    buffers.push_back(std::move(buffer));
  }
  ASSIGN_OR_RETURN(auto results, executable_->Execute(pointers));
  const absl::Time deadline = absl::Now() + kRunTimeout;
  for (size_t i = 0; i < results.size(); ++i) {
    ASSIGN_OR_RETURN(Tensor value,
                     PjrtBuffer::MoveToHost(std::move(results[i]), deadline));
    if (value.type() != output_types_[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("result ", i, " is ", value.type().ToString(),
                       "; expected ", output_types_[i].ToString()));
    }
    *outputs[i] = std::move(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> EvaluateProgram(
    const Program& program, absl::Span<const Tensor> inputs) {
  std::vector<TensorType> types;
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) {
    types.push_back(input.type());
    pointers.push_back(&input);
  }
  ASSIGN_OR_RETURN(const auto compiled,
                   CompiledProgram::Create(program, types,
                                           /*is_gradient=*/false,
                                           /*thread_count=*/1));
  std::vector<Tensor> outputs(program.types.outputs.size());
  std::vector<Tensor*> output_pointers;
  for (Tensor& output : outputs) output_pointers.push_back(&output);
  RETURN_IF_ERROR(compiled->Run(pointers, output_pointers));
  return outputs;
}

}  // namespace muster
