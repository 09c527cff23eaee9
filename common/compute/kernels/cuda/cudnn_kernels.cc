#include <cstddef>
#include <memory>
#include <utility>

#include "common/compute/kernels/cuda/cudnn/cudnn.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/core/base/status_macros.h"

// The six convolution ops by cuDNN.
namespace muster::internal {
namespace {

CudnnConvolution::Operands OperandsOf(const KernelArguments& arguments,
                                      ConvPart part) {
  const auto input = [&](int i) { return arguments.inputs[i]->address(); };
  void* const output = arguments.outputs[0]->address();
  void* const workspace = arguments.scratch.data();
  switch (part) {
    case ConvPart::kForward:
      return {input(0), input(1), output, workspace};
    case ConvPart::kBackpropInput:
      return {output, input(1), input(0), workspace};
    case ConvPart::kBackpropKernel:
      break;
  }
  return {input(0), output, input(1), workspace};
}

KernelOr MakeConvolution(const KernelSpec& spec, const KernelTarget& target,
                         const std::shared_ptr<Cudnn>& library) {
  const DType dtype = spec.outputs[0].dtype;
  if (!IsFloating(dtype)) return Unsupported(spec);
  for (const TensorType& input : spec.inputs) {
    if (input.shape.element_count() == 0) return Unsupported(spec);
  }
  ASSIGN_OR_RETURN(const ConvGeometry geometry, ConvGeometry::Of(spec));
  ASSIGN_OR_RETURN(
      std::shared_ptr<CudnnConvolution> convolution,
      CudnnConvolution::Create(
          library, {.dtype = dtype,
                    .geometry = geometry,
                    .tensor_float_32 = target.device->tensor_float_32()}));
  const size_t scratch_bytes = convolution->workspace_bytes();
  return MakeDeviceKernel(target,
                          [convolution = std::move(convolution),
                           part = geometry.part](const DeviceRun& run) {
                            return convolution->Run(
                                run.arguments.stream,
                                OperandsOf(run.arguments, part));
                          },
                          {.scratch_bytes = scratch_bytes});
}

}  // namespace

void RegisterCudnnKernels(KernelRegistry* registry, const KernelTarget& target,
                          const std::shared_ptr<Cudnn>& library) {
  for (const char* op :
       {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropKernel",
        "DepthwiseConv2D", "DepthwiseConv2DBackpropInput",
        "DepthwiseConv2DBackpropKernel"}) {
    RegisterDevice(
        registry, target, op,
        [library](const KernelSpec& spec, const KernelTarget& where) {
          return MakeConvolution(spec, where, library);
        });
  }
}

}  // namespace muster::internal
