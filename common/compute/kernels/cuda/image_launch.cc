#include "common/compute/kernels/cuda/batch_norm_image.h"
#include "common/compute/kernels/cuda/convolution_image.h"
#include "common/compute/kernels/cuda/kernel_parameters.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/pool_image.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

DeviceWindow DeviceWindowOf(const WindowAxis& axis) {
  return {.input_extent = axis.input_extent,
          .output_extent = axis.output_extent,
          .window_extent = axis.window_extent,
          .stride = axis.stride,
          .dilation = axis.dilation,
          .padding_before = axis.padding_before};
}

const char* ConvFunctionName(ConvPart part, bool is_double) {
  switch (part) {
    case ConvPart::kForward:
      return is_double ? "conv_forward_double" : "conv_forward_float";
    case ConvPart::kBackpropInput:
      return is_double ? "conv_input_double" : "conv_input_float";
    case ConvPart::kBackpropKernel:
      return "conv_kernel";
  }
  return "";
}

KernelOr MakeConv(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.outputs[0].dtype;
  if (!IsFloating(dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(const ConvGeometry geometry, ConvGeometry::Of(spec));
  ASSIGN_OR_RETURN(
      const DeviceFunction function,
      FindFunction(target, convolution_image(),
                   ConvFunctionName(geometry.part, dtype == DType::kFloat64)));
  ConvParameters parameters = {};
  parameters.count = spec.outputs[0].shape.element_count();
  parameters.batch = geometry.batch;
  parameters.input_channels = geometry.input_channels;
  parameters.output_channels = geometry.output_channels;
  parameters.group_inputs = geometry.group_inputs();
  parameters.group_outputs = geometry.group_outputs();
  parameters.height = DeviceWindowOf(geometry.height);
  parameters.width = DeviceWindowOf(geometry.width);
  return MakeDeviceKernel(target, [function, parameters, part = geometry.part](
                                      const DeviceRun& run) mutable {
    switch (part) {
      case ConvPart::kForward:
        parameters.x = run.input(0);
        parameters.kernel = run.input(1);
        parameters.y = run.output(0);
        break;
      case ConvPart::kBackpropInput:
        parameters.y = run.input(0);
        parameters.kernel = run.input(1);
        parameters.x = run.output(0);
        break;
      case ConvPart::kBackpropKernel:
        parameters.x = run.input(0);
        parameters.y = run.input(1);
        parameters.kernel = run.output(0);
        break;
    }
    return run.Launch(function, ThreadForEach(parameters.count), parameters);
  });
}

// An op of pooling: which tensors are the images and the values.
struct PoolOp {
  PoolKind pooling;
  bool is_gradient;
  int x_input;  // -1: the images are the output, and are not read.
  int values_input;
};

KernelOr MakePool(const KernelSpec& spec, const KernelTarget& target,
                  const PoolOp& op) {
  if (!IsFloating(spec.outputs[0].dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(
      const PoolGeometry geometry,
      PoolGeometry::Of(
          spec, op.x_input < 0 ? spec.outputs[0] : spec.inputs[op.x_input]));
  ASSIGN_OR_RETURN(
      const DeviceFunction function,
      FindFunction(target, pool_image(),
                   op.is_gradient ? "pool_gradient" : "pool_forward"));
  PoolParameters parameters = {};
  parameters.count = spec.outputs[0].shape.element_count();
  parameters.channels = geometry.channels;
  parameters.height = DeviceWindowOf(geometry.height);
  parameters.width = DeviceWindowOf(geometry.width);
  parameters.pooling = op.pooling;
  return MakeDeviceKernel(target, [function, parameters,
                                   op](const DeviceRun& run) mutable {
    if (op.x_input >= 0) parameters.x = run.input(op.x_input);
    parameters.values = run.input(op.values_input);
    parameters.to = run.output(0);
    return run.Launch(function, ThreadForEach(parameters.count), parameters);
  });
}

BatchNormParameters BatchNormOf(const KernelSpec& spec) {
  const Shape& x = spec.inputs[0].shape;
  BatchNormParameters parameters = {};
  parameters.channels = x.dim(x.rank() - 1);
  parameters.rows = x.ElementCountInRange(0, x.rank() - 1);
  parameters.epsilon = spec.attributes.GetOr("epsilon", 0.0);
  return parameters;
}

size_t ScratchBytes(const BatchNormParameters& parameters) {
  return static_cast<size_t>(parameters.channels) * 2 * sizeof(double);
}

double* ScratchOf(const DeviceRun& run) {
  return reinterpret_cast<double*>(run.arguments.scratch.data());
}

LaunchShape OverChannels(const BatchNormParameters& parameters) {
  constexpr int64_t kChannels = BatchNormParameters::kBlockChannels;
  LaunchShape shape;
  shape.grid[0] =
      static_cast<uint32_t>((parameters.channels + kChannels - 1) / kChannels);
  shape.block[0] = BatchNormParameters::kBlockChannels;
  shape.block[1] = BatchNormParameters::kLanes;
  return shape;
}

// BatchNormTraining: x, scale, offset -> y, mean, variance; and
// BatchNormInference: x, scale, offset, mean, variance -> y.
KernelOr MakeBatchNorm(const KernelSpec& spec, const KernelTarget& target) {
  if (!IsFloating(spec.inputs[0].dtype)) return Unsupported(spec);
  const bool is_training = spec.op == "BatchNormTraining";
  ASSIGN_OR_RETURN(
      const DeviceFunction prepare,
      FindFunction(target, batch_norm_image(),
                   is_training ? "batch_norm_moments" : "batch_norm_given"));
  ASSIGN_OR_RETURN(
      const DeviceFunction apply,
      FindFunction(target, batch_norm_image(), "batch_norm_apply"));
  const BatchNormParameters given = BatchNormOf(spec);
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        BatchNormParameters parameters = given;
        parameters.x = run.input(0);
        parameters.scale = run.input(1);
        parameters.offset = run.input(2);
        parameters.mean = is_training ? run.output(1) : run.input(3);
        parameters.variance = is_training ? run.output(2) : run.input(4);
        parameters.to = run.output(0);
        parameters.channel_values = ScratchOf(run);
        RETURN_IF_ERROR(run.Launch(prepare,
                                   is_training
                                       ? OverChannels(parameters)
                                       : ThreadForEach(parameters.channels),
                                   parameters));
        return run.Launch(apply,
                          ThreadForEach(parameters.rows * parameters.channels),
                          parameters);
      },
      {.scratch_bytes = ScratchBytes(given)});
}

KernelOr MakeBatchNormGrad(const KernelSpec& spec, const KernelTarget& target) {
  if (!IsFloating(spec.inputs[0].dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(const DeviceFunction sums,
                   FindFunction(target, batch_norm_image(), "batch_norm_sums"));
  ASSIGN_OR_RETURN(
      const DeviceFunction gradient,
      FindFunction(target, batch_norm_image(), "batch_norm_gradient"));
  const BatchNormParameters given = BatchNormOf(spec);
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        BatchNormParameters parameters = given;
        parameters.gradient = run.input(0);
        parameters.x = run.input(1);
        parameters.scale = run.input(2);
        parameters.mean = run.input(3);
        parameters.variance = run.input(4);
        parameters.to = run.output(0);
        parameters.scale_gradient = run.output(1);
        parameters.offset_gradient = run.output(2);
        parameters.channel_values = ScratchOf(run);
        RETURN_IF_ERROR(run.Launch(sums, OverChannels(parameters), parameters));
        return run.Launch(gradient,
                          ThreadForEach(parameters.rows * parameters.channels),
                          parameters);
      },
      {.scratch_bytes = ScratchBytes(given)});
}

}  // namespace

void RegisterImageKernels(KernelRegistry* registry,
                          const KernelTarget& target) {
  for (const char* op :
       {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropKernel",
        "DepthwiseConv2D", "DepthwiseConv2DBackpropInput",
        "DepthwiseConv2DBackpropKernel"}) {
    RegisterDevice(registry, target, op, MakeConv);
  }
  const auto pool = [&](absl::string_view op, const PoolOp& pool_op) {
    RegisterDevice(
        registry, target, op,
        [pool_op](const KernelSpec& spec, const KernelTarget& where) {
          return MakePool(spec, where, pool_op);
        });
  };
  pool("MaxPool2D", {PoolKind::kMax, false, 0, 0});
  pool("MaxPool2DSelect", {PoolKind::kMax, false, 1, 0});
  pool("MaxPool2DGrad", {PoolKind::kMax, true, 1, 0});
  pool("AveragePool2D", {PoolKind::kAverage, false, 0, 0});
  pool("AveragePool2DGrad", {PoolKind::kAverage, true, -1, 0});
  RegisterDevice(registry, target, "BatchNormTraining", MakeBatchNorm);
  RegisterDevice(registry, target, "BatchNormInference", MakeBatchNorm);
  RegisterDevice(registry, target, "BatchNormTrainingGrad", MakeBatchNormGrad);
}

}  // namespace muster::internal
