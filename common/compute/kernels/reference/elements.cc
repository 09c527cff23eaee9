#include "common/compute/kernels/reference/elements.h"

#include "absl/strings/str_cat.h"

namespace muster::internal {
namespace {

class FunctionKernel : public Kernel {
 public:
  FunctionKernel(std::function<absl::Status(const KernelArguments&)> run,
                 uint32_t shared_inputs)
      : run_(std::move(run)), shared_inputs_(shared_inputs) {}

  absl::Status Run(const KernelArguments& arguments) override {
    return run_(arguments);
  }

  bool MayShareOutputWithInput(int input) const override {
    return input >= 0 && input < 32 && (shared_inputs_ >> input & 1) != 0;
  }

 private:
  const std::function<absl::Status(const KernelArguments&)> run_;
  const uint32_t shared_inputs_;
};

}  // namespace

KernelOr MakeKernel(std::function<absl::Status(const KernelArguments&)> run,
                    uint32_t shared_inputs) {
  return std::make_unique<FunctionKernel>(std::move(run), shared_inputs);
}

absl::Status UnsupportedTypes(const KernelSpec& spec) {
  return absl::UnimplementedError(
      absl::StrCat("the reference kernel of ", spec.op, " does not support ",
                   spec.inputs.empty() ? std::string("these outputs")
                                       : spec.inputs[0].ToString()));
}

}  // namespace muster::internal
