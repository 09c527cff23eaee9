#include <algorithm>
#include <limits>
#include <vector>

#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/reduce_image.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/strided_index.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<int64_t> AxesOf(const KernelSpec& spec) {
  return spec.attributes.GetOr<std::vector<int64_t>>("axes", {});
}

// Sets the result of a reduction of no elements.
void SetInitial(DType dtype, ReduceParameters* parameters) {
  const auto lowest_and_highest = [&]<typename T>() {
    parameters->initial_integer = parameters->reduction == ReduceKind::kMax
                                      ? std::numeric_limits<T>::lowest()
                                      : std::numeric_limits<T>::max();
  };
  switch (parameters->reduction) {
    case ReduceKind::kSum:
    case ReduceKind::kMean:
      return;
    case ReduceKind::kProd:
      parameters->initial_float = 1;
      parameters->initial_integer = 1;
      return;
    case ReduceKind::kMax:
    case ReduceKind::kMin:
      parameters->initial_float =
          parameters->reduction == ReduceKind::kMax ? -kInfinity : kInfinity;
      if (dtype == DType::kInt32) {
        lowest_and_highest.operator()<int32_t>();
      } else if (dtype == DType::kInt64) {
        lowest_and_highest.operator()<int64_t>();
      } else if (dtype == DType::kUint8) {
        lowest_and_highest.operator()<uint8_t>();
      }
  }
}

// Two blocks of 1024 threads for each multiprocessor of an H100.
constexpr int64_t kThreadsWanted = 264 * 1024;
// Elements that each lane should have if there are enough.
constexpr int64_t kElementsOfLane = 8;

// Adjacent threads read adjacent memory: they share a group if its elements are
// contiguous, and otherwise compute adjacent results. If there are few results,
// groups are split into parts. The shape determines the order of sums, so it
// depends on the shapes of tensors only.
LaunchShape ShapeOf(ReduceParameters* parameters) {
  constexpr int64_t kWarp = 32;
  const int64_t count = parameters->count;
  const int64_t group_count = parameters->group_count;
  const DeviceLayout& reduced = parameters->reduced;
  parameters->is_row = group_count >= kWarp && reduced.rank > 0 &&
                       reduced.strides[reduced.rank - 1] == 1;
  const int64_t threads_max =
      parameters->is_row ? 256 : ReduceParameters::kThreadsMax;
  int64_t results = 1;
  while (!parameters->is_row && results < kWarp && results < count) {
    results *= 2;
  }
  int64_t lanes = 1;
  while (lanes * 2 * results <= threads_max && lanes * 2 <= group_count &&
         ((parameters->is_row && lanes < kWarp) ||
          lanes * kElementsOfLane < group_count ||
          count * lanes < kThreadsWanted)) {
    lanes *= 2;
  }
  while (lanes * results < 256 && results < count) results *= 2;
  const int64_t blocks = (count + results - 1) / results;
  const int64_t parts_wanted =
      kThreadsWanted / std::max<int64_t>(blocks * lanes * results, 1);
  const int64_t parts = std::max<int64_t>(
      std::min(parts_wanted, group_count / (lanes * kElementsOfLane)), 1);
  parameters->part_count = (group_count + parts - 1) / parts;
  LaunchShape shape;
  shape.block[parameters->is_row ? 0 : 1] = static_cast<uint32_t>(lanes);
  shape.block[parameters->is_row ? 1 : 0] = static_cast<uint32_t>(results);
  shape.grid[0] = static_cast<uint32_t>(blocks);
  if (parts > 1) {
    shape.grid[1] = static_cast<uint32_t>(
        (group_count + parameters->part_count - 1) / parameters->part_count);
  }
  return shape;
}

// A reduction in one launch, or in two: first of the parts of groups, then of
// the results of parts.
struct ReducePlan {
  ReduceParameters first;
  LaunchShape first_shape;
  ReduceParameters second;
  LaunchShape second_shape;
  size_t scratch_bytes = 0;  // 0: only the first launch.
};

DeviceLayout Strided(int64_t extent, int64_t stride) {
  DeviceLayout layout = {};
  layout.rank = 1;
  layout.extents[0] = extent;
  layout.strides[0] = stride;
  return layout;
}

ReducePlan PlanReduce(const ReduceParameters& parameters) {
  ReducePlan plan = {.first = parameters};
  plan.first_shape = ShapeOf(&plan.first);
  const int64_t parts = plan.first_shape.grid[1];
  if (parts == 1) return plan;
  plan.second = parameters;
  plan.second.group_count = parts;
  plan.second.kept = Strided(parameters.count, 1);
  plan.second.reduced = Strided(parts, parameters.count);
  plan.second_shape = ShapeOf(&plan.second);
  // The parts are too few to be split again.
  plan.second.part_count = parts;
  plan.second_shape.grid[1] = 1;
  if (parameters.reduction == ReduceKind::kMean) {
    plan.first.reduction = ReduceKind::kSum;
  }
  static_assert(sizeof(double) == sizeof(int64_t));
  plan.scratch_bytes =
      static_cast<size_t>(parts * parameters.count) * sizeof(double);
  return plan;
}

KernelOr MakeReduce(const KernelSpec& spec, const KernelTarget& target,
                    ReduceKind reduction, const std::vector<int64_t>& axes) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsNumber(dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(
      const DeviceFunction function,
      FindFunction(target, reduce_image(),
                   IsFloating(dtype) ? "reduce_float" : "reduce_integer"));
  const ReductionIndex index(spec.inputs[0].shape, axes);
  ReduceParameters parameters = {};
  parameters.count = spec.outputs[0].shape.element_count();
  parameters.group_count = index.reduced.element_count();
  parameters.divisor = parameters.group_count;
  parameters.reduction = reduction;
  parameters.kept = DeviceLayoutOf(index.kept);
  parameters.reduced = DeviceLayoutOf(index.reduced);
  SetInitial(dtype, &parameters);
  if (reduction == ReduceKind::kMean && !IsFloating(dtype) &&
      parameters.group_count == 0 && parameters.count > 0) {
    return MakeDeviceKernel(target, [](const DeviceRun&) {
      return absl::InvalidArgumentError("the mean of no integers is undefined");
    });
  }
  const ElementType partial_type =
      IsFloating(dtype) ? ElementType::kFloat64 : ElementType::kInt64;
  ReducePlan plan = PlanReduce(parameters);
  return MakeDeviceKernel(
      target,
      [function, partial_type,
       plan](const DeviceRun& run) mutable -> absl::Status {
        plan.first.from = run.input(0);
        plan.first.to = run.output(0);
        if (plan.scratch_bytes == 0) {
          return run.Launch(function, plan.first_shape, plan.first);
        }
        plan.second.to = plan.first.to;
        plan.first.to = {run.arguments.scratch.data(), partial_type};
        plan.second.from = plan.first.to;
        RETURN_IF_ERROR(run.Launch(function, plan.first_shape, plan.first));
        return run.Launch(function, plan.second_shape, plan.second);
      },
      {.scratch_bytes = plan.scratch_bytes});
}

KernelOr MakeSumLike(const KernelSpec& spec, const KernelTarget& target) {
  return MakeReduce(spec, target, ReduceKind::kSum,
                    BroadcastAxes(spec.outputs[0].shape, spec.inputs[0].shape));
}

KernelOr MakeArg(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsNumber(dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(
      const DeviceFunction function,
      FindFunction(target, reduce_image(),
                   IsFloating(dtype) ? "arg_float" : "arg_integer"));
  const ReductionIndex index(spec.inputs[0].shape,
                             {spec.attributes.GetOr<int64_t>("axis", 0)});
  ArgParameters parameters = {};
  parameters.count = spec.outputs[0].shape.element_count();
  parameters.group_count = index.reduced.element_count();
  parameters.is_max = spec.op == "ArgMax";
  parameters.kept = DeviceLayoutOf(index.kept);
  parameters.reduced = DeviceLayoutOf(index.reduced);
  return MakeDeviceKernel(target, [function,
                                   parameters](const DeviceRun& run) mutable {
    parameters.from = run.input(0);
    parameters.to = static_cast<int64_t*>(run.output(0).data);
    return run.Launch(function, ThreadForEach(parameters.count), parameters);
  });
}

KernelOr MakeProdOfOthers(const KernelSpec& spec, const KernelTarget& target) {
  if (!IsFloating(spec.inputs[0].dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindFunction(target, reduce_image(), "prod_of_others"));
  const Shape& shape = spec.inputs[0].shape;
  const ReductionIndex index(shape, AxesOf(spec));
  ProdOfOthersParameters parameters = {};
  parameters.count =
      shape.element_count() == 0 ? 0 : index.kept.element_count();
  parameters.group_count = index.reduced.element_count();
  parameters.kept = DeviceLayoutOf(index.kept);
  parameters.reduced = DeviceLayoutOf(index.reduced);
  return MakeDeviceKernel(target, [function,
                                   parameters](const DeviceRun& run) mutable {
    parameters.from = run.input(0);
    parameters.to = run.output(0);
    return run.Launch(function, ThreadForEach(parameters.count), parameters);
  });
}

KernelOr MakeCumSum(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsNumber(dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(
      const DeviceFunction function,
      FindFunction(target, reduce_image(),
                   IsFloating(dtype) ? "cum_sum_float" : "cum_sum_integer"));
  const Shape& shape = spec.inputs[0].shape;
  const ReductionIndex index(shape,
                             {spec.attributes.GetOr<int64_t>("axis", 0)});
  CumSumParameters parameters = {};
  parameters.count =
      shape.element_count() == 0 ? 0 : index.kept.element_count();
  parameters.group_count = index.reduced.element_count();
  parameters.is_exclusive = spec.attributes.GetOr<bool>("exclusive", false);
  parameters.is_reversed = spec.attributes.GetOr<bool>("reverse", false);
  parameters.kept = DeviceLayoutOf(index.kept);
  parameters.reduced = DeviceLayoutOf(index.reduced);
  return MakeDeviceKernel(target, [function,
                                   parameters](const DeviceRun& run) mutable {
    parameters.from = run.input(0);
    parameters.to = run.output(0);
    return run.Launch(function, ThreadForEach(parameters.count), parameters);
  });
}

KernelOr MakeCountAlong(const KernelSpec& spec, const KernelTarget& target) {
  const ReductionIndex index(spec.inputs[0].shape, AxesOf(spec));
  ASSIGN_OR_RETURN(auto fill,
                   Filling(target, spec,
                           static_cast<double>(index.reduced.element_count())));
  return MakeDeviceKernel(target, std::move(fill));
}

}  // namespace

void RegisterReductionKernels(KernelRegistry* registry,
                              const KernelTarget& target) {
  const auto add = [&](absl::string_view op, ReduceKind reduction) {
    RegisterDevice(
        registry, target, op,
        [reduction](const KernelSpec& spec, const KernelTarget& where) {
          return MakeReduce(spec, where, reduction, AxesOf(spec));
        });
  };
  add("Sum", ReduceKind::kSum);
  add("Prod", ReduceKind::kProd);
  add("Max", ReduceKind::kMax);
  add("Min", ReduceKind::kMin);
  add("Mean", ReduceKind::kMean);
  RegisterDevice(registry, target, "SumLike", MakeSumLike);
  RegisterDevice(registry, target, "ArgMax", MakeArg);
  RegisterDevice(registry, target, "ArgMin", MakeArg);
  RegisterDevice(registry, target, "ProdOfOthers", MakeProdOfOthers);
  RegisterDevice(registry, target, "CountAlong", MakeCountAlong);
  RegisterDevice(registry, target, "CumSum", MakeCumSum);
}

}  // namespace muster::internal
