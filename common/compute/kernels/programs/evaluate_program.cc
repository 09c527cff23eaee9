#include "common/compute/kernels/programs/evaluate_program.h"

#include <memory>

#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/programs/program_kernel.h"
#include "common/core/base/status_macros.h"

namespace muster {

absl::StatusOr<std::vector<Tensor>> EvaluateProgram(
    const Program& program, absl::Span<const Tensor> inputs) {
  std::vector<TensorType> types;
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) {
    types.push_back(input.type());
    pointers.push_back(&input);
  }
  ASSIGN_OR_RETURN(const std::vector<TensorType> output_types,
                   program.InferOutputs(types, /*is_gradient=*/false));
  ASSIGN_OR_RETURN(const auto kernel,
                   internal::MakeProgramKernel(program, types,
                                               /*is_gradient=*/false,
                                               /*thread_count=*/1));
  std::vector<Tensor> outputs;
  std::vector<Tensor*> output_pointers;
  for (const TensorType& type : output_types) {
    outputs.emplace_back(type.dtype, type.shape);
  }
  for (Tensor& output : outputs) output_pointers.push_back(&output);
  RETURN_IF_ERROR(
      kernel->Run({.inputs = pointers, .outputs = output_pointers}));
  return outputs;
}

}  // namespace muster
