#include <algorithm>
#include <limits>
#include <vector>

#include "common/compute/kernels/cuda/kernel_parameters.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/reduce_image.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/strided_index.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<int64_t> AxesOf(const KernelSpec& spec) {
  return spec.attributes.GetOr<std::vector<int64_t>>("axes", {});
}

bool IsNumber(DType dtype) { return IsFloating(dtype) || IsInteger(dtype); }

// Sets what the reduction of no elements is.
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

// Neighbouring threads read neighbouring memory: they share a group where its
// elements lie side by side, and otherwise have neighbouring results.
LaunchShape ShapeOf(const ReduceParameters& parameters) {
  constexpr int64_t kWarp = 32;
  const DeviceLayout& reduced = parameters.reduced;
  const bool is_row = parameters.group_count >= kWarp && reduced.rank > 0 &&
                      reduced.strides[reduced.rank - 1] == 1;
  const int64_t lanes_max = is_row ? 256 : kWarp;
  LaunchShape shape;
  shape.block[0] = is_row ? 1 : 32;
  while (shape.block[1] < lanes_max &&
         int64_t{shape.block[1]} * 2 <= parameters.group_count) {
    shape.block[1] *= 2;
  }
  shape.grid[0] = static_cast<uint32_t>(
      (parameters.count + shape.block[0] - 1) / shape.block[0]);
  return shape;
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
  parameters.reduction = reduction;
  parameters.kept = DeviceLayoutOf(index.kept);
  parameters.reduced = DeviceLayoutOf(index.reduced);
  SetInitial(dtype, &parameters);
  const bool is_undefined = reduction == ReduceKind::kMean &&
                            !IsFloating(dtype) && parameters.group_count == 0 &&
                            parameters.count > 0;
  return MakeDeviceKernel(
      target,
      [function, parameters,
       is_undefined](const DeviceRun& run) mutable -> absl::Status {
        if (is_undefined) {
          return absl::InvalidArgumentError(
              "the mean of no integers is undefined");
        }
        parameters.from = run.input(0);
        parameters.to = run.output(0);
        return run.Launch(function, ShapeOf(parameters), parameters);
      });
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
