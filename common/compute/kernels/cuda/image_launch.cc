#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cuda/device_code/batch_norm_image.h"
#include "common/compute/kernels/cuda/device_code/convolution_image.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/pool_image.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/core/base/check.h"
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

// A pooling op, and which of its tensors are the images and the values.
struct PoolOp {
  PoolKind pooling;
  bool is_gradient;
  int x_input;  // -1: the images are the output and are not read.
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

// Divides the rows among about `blocks` blocks. Each thread gets at least
// rows_of_thread rows, and each part at least part_rows_min rows. The division
// determines the order of sums, so it depends on the shape only.
LaunchShape SplitBatchNormRows(int64_t blocks, int64_t rows_of_thread,
                               int64_t part_rows_min,
                               BatchNormParameters* parameters) {
  constexpr int64_t kThreads = BatchNormParameters::kThreads;
  const int64_t rows = parameters->rows;
  const int64_t vectors =
      std::max<int64_t>(parameters->channels / parameters->vector, 1);
  const int64_t tiles = CeilOfRatio(vectors, kThreads);
  // Adjacent threads read adjacent memory, also across rows.
  const int64_t width = CeilOfRatio(vectors, tiles);
  const int64_t lanes =
      std::clamp<int64_t>(kThreads / width, 1, std::max<int64_t>(rows, 1));
  const int64_t parts = std::clamp<int64_t>(
      CeilOfRatio(rows, std::max(lanes * rows_of_thread, part_rows_min)), 1,
      std::max<int64_t>(blocks / tiles, 1));
  parameters->part_rows = std::max<int64_t>(CeilOfRatio(rows, parts), 1);
  parameters->part_count = CeilOfRatio(rows, parameters->part_rows);
  LaunchShape shape;
  shape.grid[0] = static_cast<uint32_t>(parameters->channels == 0 ? 0 : tiles);
  shape.grid[1] = static_cast<uint32_t>(parameters->part_count);
  shape.block[0] = static_cast<uint32_t>(width);
  shape.block[1] = static_cast<uint32_t>(lanes);
  return shape;
}

// The launches of batch normalization: sums over parts, the combination of
// parts, and the elements.
struct BatchNormPlan {
  BatchNormParameters sums;
  LaunchShape sums_shape;
  LaunchShape combine_shape;
  BatchNormParameters apply;
  LaunchShape apply_shape;
  size_t part_bytes;
  size_t factor_bytes;
};

BatchNormActivation BatchNormActivationOf(const KernelSpec& spec) {
  const auto name = spec.attributes.GetOr<std::string>("activation", "");
  if (name == "Relu") return BatchNormActivation::kRelu;
  if (name == "Relu6") return BatchNormActivation::kRelu6;
  MUSTER_CHECK(name.empty());
  return BatchNormActivation::kNone;
}

BatchNormPlan PlanBatchNorm(const KernelSpec& spec) {
  // 8 blocks for each multiprocessor of an H100.
  constexpr int64_t kBlocks = 1056;
  const Shape& x = spec.inputs[0].shape;
  const bool is_double = spec.inputs[0].dtype == DType::kFloat64;
  BatchNormPlan plan = {};
  BatchNormParameters& sums = plan.sums;
  sums.channels = x.dim(x.rank() - 1);
  sums.rows = x.ElementCountInRange(0, x.rank() - 1);
  sums.epsilon = spec.attributes.GetOr("epsilon", 0.0);
  sums.activation = BatchNormActivationOf(spec);
  sums.vector = is_double ? 2 : 4;
  if (sums.channels % sums.vector != 0) sums.vector = 1;
  plan.apply = sums;
  // With fewer rows in a part, combining parts would cost more than reading
  // them.
  plan.sums_shape = SplitBatchNormRows(kBlocks, 8, 64, &plan.sums);
  plan.apply_shape = SplitBatchNormRows(2 * kBlocks, 4, 1, &plan.apply);
  constexpr int64_t kChannels = BatchNormParameters::kCombineChannels;
  plan.combine_shape.grid[0] =
      static_cast<uint32_t>(CeilOfRatio(sums.channels, kChannels));
  plan.combine_shape.block[0] = BatchNormParameters::kCombineChannels;
  plan.combine_shape.block[1] = BatchNormParameters::kCombineLanes;
  const size_t channels = static_cast<size_t>(sums.channels);
  plan.part_bytes =
      static_cast<size_t>(sums.part_count) * channels * 2 * sizeof(double);
  plan.factor_bytes = BatchNormParameters::kFactors * channels *
                      (is_double ? sizeof(double) : sizeof(float));
  return plan;
}

// Sets the tensors that `sums` and `apply` share, and the scratch memory.
void SetMemory(const DeviceRun& run, BatchNormPlan* plan) {
  BatchNormParameters& p = plan->sums;
  constexpr uintptr_t kAlignment = 16;
  p.is_aligned = true;
  for (const void* address : {p.x.data, p.gradient.data, p.to.data}) {
    p.is_aligned =
        p.is_aligned && reinterpret_cast<uintptr_t>(address) % kAlignment == 0;
  }
  uint8_t* const scratch = run.arguments.scratch.data();
  p.part_values = reinterpret_cast<double*>(scratch);
  p.factors = scratch + plan->part_bytes;
  const int64_t part_rows = plan->apply.part_rows;
  const int64_t part_count = plan->apply.part_count;
  plan->apply = p;
  plan->apply.part_rows = part_rows;
  plan->apply.part_count = part_count;
}

absl::StatusOr<DeviceFunction> FindBatchNorm(const KernelTarget& target,
                                             const KernelSpec& spec,
                                             absl::string_view name) {
  const bool is_double = spec.inputs[0].dtype == DType::kFloat64;
  return FindFunction(target, batch_norm_image(),
                      absl::StrCat(name, is_double ? "_double" : "_float"));
}

// x, scale, offset -> y, mean, variance.
KernelOr MakeBatchNormTraining(const KernelSpec& spec,
                               const KernelTarget& target) {
  if (!IsFloating(spec.inputs[0].dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(const DeviceFunction moments,
                   FindBatchNorm(target, spec, "batch_norm_moments"));
  ASSIGN_OR_RETURN(
      const DeviceFunction combine,
      FindFunction(target, batch_norm_image(), "batch_norm_combine_moments"));
  ASSIGN_OR_RETURN(const DeviceFunction apply,
                   FindBatchNorm(target, spec, "batch_norm_apply"));
  const BatchNormPlan given = PlanBatchNorm(spec);
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        BatchNormPlan plan = given;
        plan.sums.x = run.input(0);
        plan.sums.scale = run.input(1);
        plan.sums.offset = run.input(2);
        plan.sums.to = run.output(0);
        plan.sums.mean = run.output(1);
        plan.sums.variance = run.output(2);
        SetMemory(run, &plan);
        RETURN_IF_ERROR(run.Launch(moments, plan.sums_shape, plan.sums));
        RETURN_IF_ERROR(run.Launch(combine, plan.combine_shape, plan.sums));
        return run.Launch(apply, plan.apply_shape, plan.apply);
      },
      {.scratch_bytes = given.part_bytes + given.factor_bytes});
}

// x, scale, offset, mean, variance -> y.
KernelOr MakeBatchNormInference(const KernelSpec& spec,
                                const KernelTarget& target) {
  if (!IsFloating(spec.inputs[0].dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(
      const DeviceFunction prepare,
      FindFunction(target, batch_norm_image(), "batch_norm_given"));
  ASSIGN_OR_RETURN(const DeviceFunction apply,
                   FindBatchNorm(target, spec, "batch_norm_apply"));
  BatchNormPlan given = PlanBatchNorm(spec);
  given.part_bytes = 0;
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        BatchNormPlan plan = given;
        plan.sums.x = run.input(0);
        plan.sums.scale = run.input(1);
        plan.sums.offset = run.input(2);
        plan.sums.mean = run.input(3);
        plan.sums.variance = run.input(4);
        plan.sums.to = run.output(0);
        SetMemory(run, &plan);
        RETURN_IF_ERROR(run.Launch(prepare, ThreadForEach(plan.apply.channels),
                                   plan.apply));
        return run.Launch(apply, plan.apply_shape, plan.apply);
      },
      {.scratch_bytes = given.factor_bytes});
}

KernelOr MakeBatchNormGrad(const KernelSpec& spec, const KernelTarget& target) {
  if (!IsFloating(spec.inputs[0].dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(const DeviceFunction sums,
                   FindBatchNorm(target, spec, "batch_norm_sums"));
  ASSIGN_OR_RETURN(
      const DeviceFunction combine,
      FindFunction(target, batch_norm_image(), "batch_norm_combine_sums"));
  ASSIGN_OR_RETURN(const DeviceFunction gradient,
                   FindBatchNorm(target, spec, "batch_norm_gradient"));
  const BatchNormPlan given = PlanBatchNorm(spec);
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        BatchNormPlan plan = given;
        plan.sums.gradient = run.input(0);
        plan.sums.x = run.input(1);
        plan.sums.scale = run.input(2);
        plan.sums.mean = run.input(3);
        plan.sums.variance = run.input(4);
        plan.sums.to = run.output(0);
        plan.sums.scale_gradient = run.output(1);
        plan.sums.offset_gradient = run.output(2);
        if (plan.sums.activation != BatchNormActivation::kNone) {
          plan.sums.offset = run.input(5);
        }
        SetMemory(run, &plan);
        RETURN_IF_ERROR(run.Launch(sums, plan.sums_shape, plan.sums));
        RETURN_IF_ERROR(run.Launch(combine, plan.combine_shape, plan.sums));
        return run.Launch(gradient, plan.apply_shape, plan.apply);
      },
      {.scratch_bytes = given.part_bytes + given.factor_bytes});
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
  // Fused...{activation}: a following Relu or Relu6 of the same op; the
  // gradient has the offset as its last input.
  for (const char* prefix : {"", "Fused"}) {
    const auto add = [&](const char* op, auto make) {
      RegisterDevice(registry, target, absl::StrCat(prefix, op), make);
    };
    add("BatchNormTraining", MakeBatchNormTraining);
    add("BatchNormInference", MakeBatchNormInference);
    add("BatchNormTrainingGrad", MakeBatchNormGrad);
  }
}

}  // namespace muster::internal
