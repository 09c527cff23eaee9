#include <cstdint>
#include <memory>

#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/random_position.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

class UniformKernel : public Kernel {
 public:
  absl::Status Run(const KernelArguments& arguments) override {
    const auto seed = arguments.inputs[0]->flat<int64_t>();
    const auto out = arguments.outputs[0]->mutable_flat<float>();
    FillUniform(
        FoldIn(static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1])),
        internal::FirstRandomElement(arguments), out);
    return absl::OkStatus();
  }
};

}  // namespace

namespace internal {

void RegisterCpuRandomKernels(KernelRegistry* registry) {
  registry->Register("RandomUniform",
                     [](const KernelSpec& spec,
                        int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                       if (spec.outputs[0].dtype != DType::kFloat32) {
                         return absl::UnimplementedError("float32 only");
                       }
                       return std::make_unique<UniformKernel>();
                     });
}

}  // namespace internal
}  // namespace muster
