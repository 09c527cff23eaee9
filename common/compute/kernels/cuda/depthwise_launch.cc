#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cuda/device_code/depthwise_image.h"
#include "common/compute/kernels/cuda/device_code/depthwise_parameters.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

constexpr int64_t kAccessBytes = 16;
constexpr int64_t kInt32End = int64_t{1} << 31;

DepthwiseAxis AxisOf(const WindowAxis& axis) {
  return {.input_extent = static_cast<int32_t>(axis.input_extent),
          .output_extent = static_cast<int32_t>(axis.output_extent),
          .window_extent = static_cast<int32_t>(axis.window_extent),
          .stride = static_cast<int32_t>(axis.stride),
          .padding_before = static_cast<int32_t>(axis.padding_before)};
}

// True if the kernels support such windows and can compute their positions in
// 32 bits.
bool IsSupportedAxis(const WindowAxis& axis) {
  constexpr int64_t kWindowMax = 15;
  constexpr int64_t kEnd = int64_t{1} << 29;
  return axis.dilation == 1 && axis.window_extent <= kWindowMax &&
         axis.stride < kEnd && axis.padding_before < kEnd &&
         axis.padding_after < kEnd && axis.input_extent < kEnd &&
         axis.output_extent < kEnd;
}

bool IsSupported(const KernelSpec& spec, const ConvGeometry& geometry) {
  const DType dtype = spec.outputs[0].dtype;
  if (!IsFloating(dtype) || dtype == DType::kFloat64) return false;
  for (const TensorType& input : spec.inputs) {
    if (input.shape.element_count() == 0) return false;
  }
  const WindowAxis& height = geometry.height;
  const WindowAxis& width = geometry.width;
  if (!IsSupportedAxis(height) || !IsSupportedAxis(width) ||
      geometry.group_inputs() != 1 || geometry.group_outputs() != 1) {
    return false;
  }
  // Positions in an image, and rows of all images, are counted in 32 bits.
  const int64_t channels = geometry.input_channels;
  constexpr int64_t kEnd = kInt32End / 2;
  const auto is_small = [&](int64_t rows, int64_t columns) {
    return rows * columns < kEnd / channels &&
           rows * columns < kEnd / geometry.batch;
  };
  return is_small(height.input_extent, width.input_extent) &&
         is_small(height.output_extent, width.output_extent) &&
         is_small(height.window_extent, width.window_extent);
}

// The launches of one of the ops.
struct DepthwisePlan {
  DepthwiseParameters parameters;
  LaunchShape shape;
  LaunchShape combine_shape;  // For the gradient of the kernel.
  size_t scratch_bytes = 0;
};

// True if the device functions for 3 x 3 windows apply.
bool Has3x3Kernel(const DepthwiseParameters& p) {
  return p.vector > 1 && p.height.window_extent == 3 &&
         p.width.window_extent == 3 && p.height.stride == p.width.stride &&
         p.width.stride <= 2;
}

// Plans the ops whose result is an image.
void PlanImages(const ConvGeometry& geometry, DepthwisePlan* plan) {
  DepthwiseParameters& p = plan->parameters;
  const bool is_forward = geometry.part == ConvPart::kForward;
  const int64_t height =
      is_forward ? p.height.output_extent : p.height.input_extent;
  int64_t strips = is_forward ? p.width.output_extent : p.width.input_extent;
  if (Has3x3Kernel(p)) {
    constexpr int64_t kPixels = DepthwiseParameters::kImagePixels;
    strips = is_forward
                 ? CeilOfRatio(strips, kPixels / p.width.stride)
                 : CeilOfRatio(strips + p.width.padding_before % p.width.stride,
                               kPixels);
  }
  const int64_t items = strips * (p.channels / p.vector);
  // Adjacent threads access adjacent memory. Rows of a block share the memory
  // that they read.
  int64_t tile_items = 32;
  while (tile_items / 2 >= items) tile_items /= 2;
  const int64_t tile_rows = DepthwiseParameters::kThreads / tile_items;
  p.rows = static_cast<uint32_t>(geometry.batch * height);
  p.strips_per_row = static_cast<uint32_t>(strips);
  p.tiles_per_row = static_cast<uint32_t>(CeilOfRatio(items, tile_items));
  plan->shape.block[0] = static_cast<uint32_t>(tile_items);
  plan->shape.block[1] = static_cast<uint32_t>(tile_rows);
  plan->shape.grid[0] =
      p.tiles_per_row * static_cast<uint32_t>(CeilOfRatio(p.rows, tile_rows));
}

// Plans the gradient of the kernel. The plan determines the order of sums, so
// it depends on the shape only.
void PlanKernel(const ConvGeometry& geometry, DepthwisePlan* plan) {
  // 8 blocks for each multiprocessor of an H100.
  constexpr int64_t kBlocks = 1056;
  // With fewer strips, combining the parts would cost more than reading them.
  // With more, the float32 sums of a thread would lose precision.
  constexpr int64_t kStripsOfThreadMin = 8;
  constexpr int64_t kStripsOfThreadMax = 256;
  DepthwiseParameters& p = plan->parameters;
  int64_t strips_per_row = p.width.output_extent;
  int64_t runs = 1;
  if (Has3x3Kernel(p)) {
    strips_per_row =
        CeilOfRatio(strips_per_row, DepthwiseParameters::kKernelPixels);
  } else {
    runs = p.height.window_extent *
           CeilOfRatio(p.width.window_extent, DepthwiseParameters::kRunTaps);
  }
  const int64_t strips =
      geometry.batch * p.height.output_extent * strips_per_row;
  const int64_t vectors = p.channels / p.vector;
  const int64_t tiles = CeilOfRatio(vectors, DepthwiseParameters::kThreads);
  const int64_t width = CeilOfRatio(vectors, tiles);
  const int64_t lanes =
      std::clamp<int64_t>(DepthwiseParameters::kThreads / width, 1, strips);
  const int64_t parts =
      std::max(std::min(CeilOfRatio(strips, lanes * kStripsOfThreadMin),
                        std::max<int64_t>(kBlocks / (tiles * runs), 1)),
               CeilOfRatio(strips, lanes * kStripsOfThreadMax));
  const int64_t part_strips =
      CeilOfRatio(CeilOfRatio(strips, parts), lanes) * lanes;
  p.rows = static_cast<uint32_t>(geometry.batch * p.height.output_extent);
  p.strips_per_row = static_cast<uint32_t>(strips_per_row);
  p.strips = static_cast<uint32_t>(strips);
  p.part_strips = static_cast<uint32_t>(part_strips);
  p.part_count = static_cast<uint32_t>(CeilOfRatio(strips, part_strips));
  plan->shape = {
      .grid = {p.part_count, static_cast<uint32_t>(tiles),
               static_cast<uint32_t>(runs)},
      .block = {static_cast<uint32_t>(width), static_cast<uint32_t>(lanes), 1}};
  const int64_t columns =
      int64_t{p.height.window_extent} * p.width.window_extent * p.channels;
  constexpr int64_t kColumns = DepthwiseParameters::kCombineColumns;
  plan->combine_shape.grid[0] =
      static_cast<uint32_t>(CeilOfRatio(columns, kColumns));
  plan->combine_shape.block[0] = DepthwiseParameters::kCombineColumns;
  plan->combine_shape.block[1] = DepthwiseParameters::kCombineLanes;
  plan->scratch_bytes =
      p.part_count * static_cast<size_t>(columns) * sizeof(float);
}

DepthwisePlan PlanOf(const KernelSpec& spec, const ConvGeometry& geometry) {
  DepthwisePlan plan = {};
  DepthwiseParameters& p = plan.parameters;
  p.height = AxisOf(geometry.height);
  p.width = AxisOf(geometry.width);
  p.channels = static_cast<int32_t>(geometry.input_channels);
  p.vector = static_cast<int32_t>(
      kAccessBytes / static_cast<int64_t>(SizeOf(spec.outputs[0].dtype)));
  if (p.channels % p.vector != 0) p.vector = 1;
  if (geometry.part == ConvPart::kBackpropKernel) {
    PlanKernel(geometry, &plan);
  } else {
    PlanImages(geometry, &plan);
  }
  return plan;
}

void SetOperands(const DeviceRun& run, ConvPart part, DepthwiseParameters* p) {
  switch (part) {
    case ConvPart::kForward:
      p->x = run.input(0);
      p->kernel = run.input(1);
      p->y = run.output(0);
      break;
    case ConvPart::kBackpropInput:
      p->y = run.input(0);
      p->kernel = run.input(1);
      p->x = run.output(0);
      break;
    case ConvPart::kBackpropKernel:
      p->x = run.input(0);
      p->y = run.input(1);
      p->kernel = run.output(0);
      break;
  }
  p->is_aligned = true;
  for (const void* address : {p->x.data, p->kernel.data, p->y.data}) {
    p->is_aligned = p->is_aligned &&
                    reinterpret_cast<uintptr_t>(address) % kAccessBytes == 0;
  }
}

std::string FunctionName(ConvPart part, const DepthwiseParameters& parameters) {
  const char* const name = part == ConvPart::kForward ? "depthwise_forward"
                           : part == ConvPart::kBackpropInput
                               ? "depthwise_input"
                               : "depthwise_kernel";
  if (!Has3x3Kernel(parameters)) return name;
  return absl::StrCat(name,
                      parameters.width.stride == 1 ? "_3x3" : "_3x3_stride_2");
}

KernelOr MakeDepthwise(const KernelSpec& spec, const KernelTarget& target) {
  ASSIGN_OR_RETURN(const ConvGeometry geometry, ConvGeometry::Of(spec));
  if (!IsSupported(spec, geometry)) return Unsupported(spec);
  const DepthwisePlan plan = PlanOf(spec, geometry);
  const ConvPart part = geometry.part;
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindFunction(target, depthwise_image(),
                                FunctionName(part, plan.parameters)));
  ASSIGN_OR_RETURN(
      const DeviceFunction combine,
      FindFunction(target, depthwise_image(), "depthwise_combine"));
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        DepthwiseParameters parameters = plan.parameters;
        SetOperands(run, part, &parameters);
        if (part != ConvPart::kBackpropKernel) {
          return run.Launch(function, plan.shape, parameters);
        }
        parameters.part_values =
            reinterpret_cast<float*>(run.arguments.scratch.data());
        RETURN_IF_ERROR(run.Launch(function, plan.shape, parameters));
        return run.Launch(combine, plan.combine_shape, parameters);
      },
      {.scratch_bytes = plan.scratch_bytes});
}

}  // namespace

void RegisterDepthwiseKernels(KernelRegistry* registry,
                              const KernelTarget& target) {
  for (const char* op : {"DepthwiseConv2D", "DepthwiseConv2DBackpropInput",
                         "DepthwiseConv2DBackpropKernel"}) {
    RegisterDevice(registry, target, op, MakeDepthwise);
  }
}

}  // namespace muster::internal
