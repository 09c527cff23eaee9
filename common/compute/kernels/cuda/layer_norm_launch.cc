#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/device_code/layer_norm_image.h"
#include "common/compute/kernels/cuda/device_code/layer_norm_parameters.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

using Parameters = LayerNormParameters;

constexpr int64_t kWarp = 32;
constexpr int64_t kMultiprocessors = 132;  // Of an H100.

// How the lanes of blocks share a row.
enum class RowLength { kOneVector, kSomeVectors, kLong };

struct LayerNormPlan {
  RowLength length;
  Parameters parameters;
  LaunchShape shape;       // The grid is not set.
  LaunchShape long_shape;  // One block for each row.
  int64_t tiles = 1;       // Along a row.
};

bool IsDouble(const KernelSpec& spec) {
  return spec.inputs[0].dtype == DType::kFloat64;
}

// Plans how lanes share a row. The plan determines the order of sums, so it
// depends on shapes only.
LayerNormPlan PlanLayerNorm(const KernelSpec& spec, int scale_input) {
  LayerNormPlan plan = {};
  Parameters& p = plan.parameters;
  const Shape& x = spec.inputs[0].shape;
  const Shape& scale = spec.inputs[scale_input].shape;
  p.features = scale.element_count();
  p.rows = x.ElementCountInRange(0, x.rank() - scale.rank());
  p.epsilon = spec.attributes.GetOr("epsilon", 0.0);
  p.vector = IsDouble(spec) ? 2 : 4;
  if (p.features % p.vector != 0) p.vector = 1;
  const int64_t vectors = std::max<int64_t>(p.features / p.vector, 1);
  // A lane gets several vectors of a row if the lanes fill a warp. Then more
  // loads are in flight, and fewer warps repeat the computations for the whole
  // row.
  const int64_t of_lane_min = CeilOfRatio(vectors, Parameters::kThreads);
  const int64_t of_lane =
      std::clamp<int64_t>(CeilOfRatio(vectors, kWarp), of_lane_min,
                          std::max<int64_t>(Parameters::kVectors, of_lane_min));
  plan.length = of_lane == 1                      ? RowLength::kOneVector
                : of_lane <= Parameters::kVectors ? RowLength::kSomeVectors
                                                  : RowLength::kLong;
  uint32_t& lanes = plan.shape.block[0];
  if (vectors <= kWarp) {
    while (lanes < vectors) lanes *= 2;
    plan.shape.block[1] = Parameters::kThreads / lanes;
  } else {
    lanes = static_cast<uint32_t>(
        CeilOfRatio(CeilOfRatio(vectors, of_lane), kWarp) * kWarp);
  }
  if (plan.length == RowLength::kLong) {
    plan.tiles = CeilOfRatio(vectors, lanes);
    plan.long_shape.grid[0] = static_cast<uint32_t>(p.rows);
    plan.long_shape.block[0] = Parameters::kLongThreads;
  }
  return plan;
}

// Divides the rows into equal parts for blocks with about `threads` threads in
// total. Each thread gets at least thread_rows rows.
void SplitLayerNormRows(int64_t threads, int64_t thread_rows,
                        LayerNormPlan* plan) {
  // A thread sums at most this many rows in float; more rows give more parts.
  constexpr int64_t kThreadRowsMax = 256;
  Parameters& p = plan->parameters;
  const int64_t block_rows = plan->shape.block[1];
  const int64_t blocks = std::max<int64_t>(
      threads / (plan->shape.block[0] * block_rows * plan->tiles), 1);
  const int64_t steps =
      std::clamp(CeilOfRatio(CeilOfRatio(p.rows, blocks), block_rows),
                 thread_rows, std::max(thread_rows, kThreadRowsMax));
  p.part_rows = steps * block_rows;
  p.part_count = CeilOfRatio(p.rows, p.part_rows);
  plan->shape.grid[0] = static_cast<uint32_t>(p.part_count);
  plan->shape.grid[1] = static_cast<uint32_t>(plan->tiles);
}

bool IsAligned(const Parameters& p) {
  constexpr uintptr_t kAlignment = 16;
  bool is_aligned = true;
  for (const void* address : {p.x.data, p.gradient.data, p.to.data}) {
    is_aligned =
        is_aligned && reinterpret_cast<uintptr_t>(address) % kAlignment == 0;
  }
  return is_aligned;
}

absl::StatusOr<DeviceFunction> Find(const KernelTarget& target,
                                    const KernelSpec& spec,
                                    absl::string_view name) {
  return FindFunction(
      target, layer_norm_image(),
      absl::StrCat(name, IsDouble(spec) ? "_double" : "_float"));
}

absl::string_view Prefix(RowLength length) {
  switch (length) {
    case RowLength::kOneVector:
      return "layer_norm_one";
    case RowLength::kSomeVectors:
      return "layer_norm_some";
    case RowLength::kLong:
      return "layer_norm_long";
  }
  return "";
}

// x, scale, offset -> y, mean, inverse.
KernelOr MakeLayerNorm(const KernelSpec& spec, const KernelTarget& target) {
  if (!IsFloating(spec.inputs[0].dtype)) return Unsupported(spec);
  LayerNormPlan plan = PlanLayerNorm(spec, 1);
  // Twice as many threads as the GPU can run at a time, so that blocks end at
  // different times.
  SplitLayerNormRows(2 * kMultiprocessors * 2048, 1, &plan);
  if (plan.length == RowLength::kLong) plan.shape = plan.long_shape;
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   Find(target, spec, Prefix(plan.length)));
  return MakeDeviceKernel(target,
                          [=](const DeviceRun& run) -> absl::Status {
                            Parameters p = plan.parameters;
                            p.x = run.input(0);
                            p.scale = run.input(1);
                            p.offset = run.input(2);
                            p.to = run.output(0);
                            p.mean = run.output(1);
                            p.inverse = run.output(2);
                            p.is_aligned = IsAligned(p);
                            return run.Launch(function, plan.shape, p);
                          },
                          // Each thread reads its elements for the last time
                          // before it writes them, and reads the first element
                          // of the row before the sum of the row is complete.
                          {.shared_inputs = 1});
}

// gradient, x, scale, mean, inverse -> the gradients of x, scale and offset.
KernelOr MakeLayerNormGrad(const KernelSpec& spec, const KernelTarget& target) {
  if (!IsFloating(spec.inputs[0].dtype)) return Unsupported(spec);
  LayerNormPlan plan = PlanLayerNorm(spec, 2);
  const bool is_long = plan.length == RowLength::kLong;
  // With fewer rows in a part, combining parts would cost more than reading
  // them.
  SplitLayerNormRows(kMultiprocessors * 1024, plan.shape.block[1] > 1 ? 2 : 8,
                     &plan);
  ASSIGN_OR_RETURN(
      const DeviceFunction gradient,
      Find(target, spec, absl::StrCat(Prefix(plan.length), "_gradient")));
  ASSIGN_OR_RETURN(const DeviceFunction sums,
                   Find(target, spec, "layer_norm_long_sums"));
  ASSIGN_OR_RETURN(
      const DeviceFunction combine,
      FindFunction(target, layer_norm_image(), "layer_norm_combine"));
  LaunchShape combine_shape;
  combine_shape.grid[0] = static_cast<uint32_t>(
      CeilOfRatio(plan.parameters.features, Parameters::kCombineFeatures));
  combine_shape.block[0] = Parameters::kCombineFeatures;
  combine_shape.block[1] = Parameters::kCombineLanes;
  const DType computed = IsDouble(spec) ? DType::kFloat64 : DType::kFloat32;
  const size_t part_bytes = static_cast<size_t>(2 * plan.parameters.part_count *
                                                plan.parameters.features) *
                            SizeOf(computed);
  const size_t row_bytes =
      is_long ? 2 * plan.parameters.rows * SizeOf(computed) : 0;
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        Parameters p = plan.parameters;
        p.gradient = run.input(0);
        p.x = run.input(1);
        p.scale = run.input(2);
        p.mean = run.input(3);
        p.inverse = run.input(4);
        p.to = run.output(0);
        p.scale_gradient = run.output(1);
        p.offset_gradient = run.output(2);
        p.is_aligned = IsAligned(p);
        uint8_t* const scratch = run.arguments.scratch.data();
        p.part_values = {scratch, ElementTypeOf(computed)};
        p.row_sums = {scratch + part_bytes, ElementTypeOf(computed)};
        if (is_long) RETURN_IF_ERROR(run.Launch(sums, plan.long_shape, p));
        RETURN_IF_ERROR(run.Launch(gradient, plan.shape, p));
        return run.Launch(combine, combine_shape, p);
      },
      // As above; an earlier launch has completed the sums of long rows.
      {.shared_inputs = 3, .scratch_bytes = part_bytes + row_bytes});
}

}  // namespace

void RegisterLayerNormKernels(KernelRegistry* registry,
                              const KernelTarget& target) {
  RegisterDevice(registry, target, "LayerNorm", MakeLayerNorm);
  RegisterDevice(registry, target, "LayerNormGrad", MakeLayerNormGrad);
}

}  // namespace muster::internal
