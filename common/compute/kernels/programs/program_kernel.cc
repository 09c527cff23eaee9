#include "common/compute/kernels/programs/program_kernel.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/compute/kernels/programs/program_compiler.h"
#include "common/compute/programs/program.h"
#include "common/core/base/status_macros.h"
#include "common/core/pjrt/pjrt_client.h"
#include "common/core/tensor/tensor.h"

namespace muster::internal {
namespace {

// Longer than any step takes.
constexpr absl::Duration kRunTimeout = absl::Hours(1);

class ProgramKernel : public Kernel {
 public:
  ProgramKernel(std::string name, std::shared_ptr<PjrtClient> client,
                std::shared_ptr<const PjrtExecutable> executable)
      : name_(std::move(name)),
        client_(std::move(client)),
        executable_(std::move(executable)) {}

  absl::Status Run(const KernelArguments& arguments) override {
    // After a timeout the plugin may still write to the outputs of that run.
    RETURN_IF_ERROR(timeout_);
    const absl::Status status = Execute(arguments);
    if (status.ok()) return status;
    const absl::Status named(
        status.code(), absl::StrCat("program ", name_, ": ", status.message()));
    if (absl::IsDeadlineExceeded(named)) timeout_ = named;
    return named;
  }

 private:
  absl::Status Execute(const KernelArguments& arguments) {
    std::vector<std::unique_ptr<PjrtBuffer>> inputs;
    std::vector<const PjrtBuffer*> pointers;
    for (const Tensor* const input : arguments.inputs) {
      ASSIGN_OR_RETURN(auto buffer, client_->CopyToDevice(*input));
      pointers.push_back(buffer.get());
      inputs.push_back(std::move(buffer));
    }
    ASSIGN_OR_RETURN(const auto results, executable_->Execute(pointers));
    const absl::Time deadline = absl::Now() + kRunTimeout;
    for (size_t i = 0; i < results.size(); ++i) {
      RETURN_IF_ERROR(results[i]->CopyTo(*arguments.outputs[i], deadline));
    }
    return absl::OkStatus();
  }

  const std::string name_;
  const std::shared_ptr<PjrtClient> client_;
  const std::shared_ptr<const PjrtExecutable> executable_;
  absl::Status timeout_;
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

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeProgramKernel(
    const Program& program, absl::Span<const TensorType> inputs,
    bool is_gradient, int thread_count) {
  const auto index = program.FindVariant(inputs, is_gradient);
  if (!index.ok()) {
    if (!HasNoExamples(program.types.inputs, inputs)) return index.status();
    return std::make_unique<ZeroKernel>();
  }
  const Program::Variant& variant = program.variants[*index];
  const std::string& module =
      is_gradient ? variant.gradient_stablehlo : variant.stablehlo;
  ASSIGN_OR_RETURN(auto client, ProgramClient(thread_count));
  ASSIGN_OR_RETURN(auto executable,
                   CompileProgram(program.name, module, thread_count));
  const int expected = is_gradient
                           ? static_cast<int>(program.gradient->inputs.size())
                           : static_cast<int>(variant.types.outputs.size());
  if (executable->output_count() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "program ", program.name, " has ", executable->output_count(),
        " outputs; expected ", expected));
  }
  return std::make_unique<ProgramKernel>(program.name, std::move(client),
                                         std::move(executable));
}

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
