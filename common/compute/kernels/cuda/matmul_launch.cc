#include <string>

#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/matmul_image.h"
#include "common/compute/kernels/cuda/device_code/matmul_parameters.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/strided_index.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

using Activation = MatMulParameters::Activation;

// A CUDA grid has at most this many blocks along y.
constexpr int64_t kMatricesMax = 65535;

absl::StatusOr<Activation> MatMulActivationOf(const KernelSpec& spec) {
  const auto name = spec.attributes.GetOr<std::string>("activation", "");
  if (name.empty()) return Activation::kNone;
  if (name == "Relu") return Activation::kRelu;
  if (name == "Relu6") return Activation::kRelu6;
  if (name == "Tanh") return Activation::kTanh;
  if (name == "Sigmoid") return Activation::kSigmoid;
  if (name == "Gelu") return Activation::kGelu;
  if (name == "GeluTanh") return Activation::kGeluTanh;
  return Unsupported(spec);
}

const char* NameOf(ComputeType type) {
  switch (type) {
    case ComputeType::kFloat:
      return "matmul_float";
    case ComputeType::kDouble:
      return "matmul_double";
    case ComputeType::kInt64:
      return "matmul_int64";
  }
  return "";
}

DeviceLayout BatchLayout(const Shape& shape, const Shape& batch) {
  const Shape own(shape.dims().first(shape.rank() - 2));
  return DeviceLayoutOf(BroadcastIndex(own, batch));
}

// MatMul, and FusedMatMulBias, which has a bias row and an activation.
KernelOr MakeMatMul(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsNumber(dtype)) return Unsupported(spec);
  const Shape& a = spec.inputs[0].shape;
  const Shape& b = spec.inputs[1].shape;
  const Shape& y = spec.outputs[0].shape;
  const Shape batch(y.dims().first(y.rank() - 2));
  if (batch.element_count() > kMatricesMax) return Unsupported(spec);
  ASSIGN_OR_RETURN(
      const DeviceFunction function,
      FindFunction(target, matmul_image(), NameOf(ComputeTypeOf(dtype))));
  const bool transpose_a = spec.attributes.GetOr("transpose_a", false);
  MatMulParameters parameters =
      MatMulOf(y.dim(y.rank() - 2), a.dim(a.rank() - (transpose_a ? 2 : 1)),
               y.dim(y.rank() - 1), transpose_a,
               spec.attributes.GetOr("transpose_b", false));
  parameters.a_batch = BatchLayout(a, batch);
  parameters.b_batch = BatchLayout(b, batch);
  ASSIGN_OR_RETURN(parameters.activation, MatMulActivationOf(spec));
  const LaunchShape shape = ShapeOf(parameters, batch.element_count());
  return MakeDeviceKernel(
      target, [function, shape, parameters](const DeviceRun& run) mutable {
        parameters.a = run.input(0);
        parameters.b = run.input(1);
        parameters.y = run.output(0);
        if (run.arguments.inputs.size() > 2) parameters.bias = run.input(2);
        return run.Launch(function, shape, parameters);
      });
}

}  // namespace

void RegisterMatMulKernels(KernelRegistry* registry,
                           const KernelTarget& target) {
  RegisterDevice(registry, target, "MatMul", MakeMatMul);
  RegisterDevice(registry, target, "FusedMatMulBias", MakeMatMul);
}

}  // namespace muster::internal
