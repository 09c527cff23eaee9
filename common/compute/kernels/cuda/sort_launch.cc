#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/rows_image.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/core/base/status_macros.h"

// TopK, TakeAlongRows and AddAlongRowsLike.
namespace muster::internal {
namespace {

int64_t LengthOfRows(const TensorType& type) {
  return type.shape.dim(type.shape.rank() - 1);
}

// Returns the kernel for elements of `dtype`.
absl::StatusOr<DeviceFunction> FindRowFunction(const KernelTarget& target,
                                               absl::string_view name,
                                               DType dtype) {
  return FindFunction(
      target, rows_image(),
      absl::StrCat(name, IsFloating(dtype) ? "_float" : "_integer"));
}

// Sorts all positions of each row by merge sort, alternating between two arrays
// of positions.
KernelOr MakeTopK(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsNumber(dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(const DeviceFunction sort,
                   FindRowFunction(target, "sort_row_runs", dtype));
  ASSIGN_OR_RETURN(const DeviceFunction merge,
                   FindRowFunction(target, "merge_row_runs", dtype));
  ASSIGN_OR_RETURN(const DeviceFunction take,
                   FindRowFunction(target, "take_top", dtype));
  SortElementsParameters parameters = {};
  parameters.count = spec.inputs[0].shape.element_count();
  parameters.length = LengthOfRows(spec.inputs[0]);
  parameters.smallest_first = spec.attributes.GetOr("smallest", false);
  const TakeTopParameters top = {.count = spec.outputs[0].shape.element_count(),
                                 .length = parameters.length,
                                 .k = LengthOfRows(spec.outputs[0]),
                                 .elements = {},
                                 .sorted = nullptr,
                                 .values = {},
                                 .indices = nullptr};
  if (top.count == 0) parameters.count = 0;
  const size_t scratch_bytes = parameters.count * 2 * sizeof(int32_t);
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        SortElementsParameters step = parameters;
        step.elements = run.input(0);
        step.run = SortElementsParameters::kFirstRun;
        step.to = reinterpret_cast<int32_t*>(run.arguments.scratch.data());
        int32_t* other = step.to + step.count;
        const LaunchShape shape = ThreadForEach(step.count);
        RETURN_IF_ERROR(run.Launch(sort, shape, step));
        for (; step.run < step.length; step.run *= 2) {
          step.from = std::exchange(step.to, other);
          other = const_cast<int32_t*>(step.from);
          RETURN_IF_ERROR(run.Launch(merge, shape, step));
        }
        TakeTopParameters taken = top;
        taken.elements = run.input(0);
        taken.sorted = step.to;
        taken.values = run.output(0);
        taken.indices = static_cast<int32_t*>(run.output(1).data);
        return run.Launch(take, ThreadForEach(taken.count), taken);
      },
      {.scratch_bytes = scratch_bytes});
}

// `with_length` is the type of the rows into which the indices point.
AlongRowsParameters AlongRowsOf(const KernelSpec& spec,
                                const TensorType& with_length) {
  AlongRowsParameters parameters = {};
  parameters.count = spec.inputs[1].shape.element_count();
  parameters.width = LengthOfRows(spec.inputs[1]);
  parameters.length = LengthOfRows(with_length);
  return parameters;
}

absl::Status Launch(const DeviceRun& run, const DeviceFunction& function,
                    AlongRowsParameters parameters) {
  parameters.from = run.input(0);
  parameters.indices = run.input(1);
  parameters.to = run.output(0);
  parameters.fault = run.fault;
  return run.Launch(function, ThreadForEach(parameters.count), parameters);
}

KernelOr MakeTakeAlongRows(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsNumber(dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindRowFunction(target, "take_along_rows", dtype));
  const AlongRowsParameters parameters = AlongRowsOf(spec, spec.inputs[0]);
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) { return Launch(run, function, parameters); },
      {.has_data_errors = true});
}

KernelOr MakeAddAlongRowsLike(const KernelSpec& spec,
                              const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsNumber(dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(auto clear, Filling(target, spec, 0));
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindRowFunction(target, "add_along_rows", dtype));
  const AlongRowsParameters parameters = AlongRowsOf(spec, spec.outputs[0]);
  return MakeDeviceKernel(target,
                          [=](const DeviceRun& run) -> absl::Status {
                            RETURN_IF_ERROR(clear(run));
                            return Launch(run, function, parameters);
                          },
                          {.has_data_errors = true});
}

}  // namespace

void RegisterSortKernels(KernelRegistry* registry, const KernelTarget& target) {
  RegisterDevice(registry, target, "TopK", MakeTopK);
  RegisterDevice(registry, target, "TakeAlongRows", MakeTakeAlongRows);
  RegisterDevice(registry, target, "AddAlongRowsLike", MakeAddAlongRowsLike);
}

}  // namespace muster::internal
