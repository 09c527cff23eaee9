#include "common/compute/kernels/programs/program_kernel.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/compute/programs/compiled/compiled_program.h"
#include "common/compute/programs/program.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"

namespace muster::internal {
namespace {

class ProgramKernel : public Kernel {
 public:
  explicit ProgramKernel(std::unique_ptr<CompiledProgram> program)
      : program_(std::move(program)) {}

  absl::Status Run(const KernelArguments& arguments) override {
    return program_->Run(arguments.inputs, arguments.outputs);
  }

  bool AllocatesOutputs() const override { return true; }

 private:
  const std::unique_ptr<CompiledProgram> program_;
};

// A replica without examples computes nothing.
class ZeroKernel : public Kernel {
 public:
  absl::Status Run(const KernelArguments& arguments) override {
    for (Tensor* const output : arguments.outputs) {
      std::memset(output->mutable_raw_data(), 0, output->size_bytes());
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeProgramKernel(
    const Program& program, absl::Span<const TensorType> inputs,
    bool is_gradient, int thread_count) {
  const auto variant = program.FindVariant(inputs, is_gradient);
  if (!variant.ok() && HasNoExamples(program.types.inputs, inputs)) {
    return std::make_unique<ZeroKernel>();
  }
  ASSIGN_OR_RETURN(
      auto compiled,
      CompiledProgram::Create(program, inputs, is_gradient, thread_count));
  return std::make_unique<ProgramKernel>(std::move(compiled));
}

}  // namespace

void RegisterProgramKernels(KernelRegistry* registry) {
  registry->Register(
      "Program",
      [](const KernelSpec& spec,
         int thread_count) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        ASSIGN_OR_RETURN(const std::string encoded,
                         spec.attributes.Get<std::string>("program"));
        ASSIGN_OR_RETURN(const bool is_gradient,
                         spec.attributes.Get<bool>("is_gradient"));
        ASSIGN_OR_RETURN(const Program program, Program::Decode(encoded));
        return MakeProgramKernel(program, spec.inputs, is_gradient,
                                 thread_count);
      });
}

}  // namespace muster::internal
