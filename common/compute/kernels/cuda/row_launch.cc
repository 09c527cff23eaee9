#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/softmax_image.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

// How rows are computed: by which device function, and by up to lanes_max lanes
// with lane_elements each.
struct RowPlan {
  const char* function;
  int64_t lanes_max;
  int64_t lane_elements;
};

RowPlan PlanRows(const KernelSpec& spec, RowFunction row_function,
                 int64_t classes) {
  constexpr int64_t kWarp = 32;
  constexpr int64_t kShortRow = 8 * kWarp;
  constexpr int64_t kAccessBytes = 16;
  const DType dtype = spec.inputs[0].dtype;
  const bool is_dense = row_function == RowFunction::kCrossEntropy ||
                        row_function == RowFunction::kCrossEntropyGrad;
  const int64_t vector = kAccessBytes / static_cast<int64_t>(SizeOf(dtype));
  if (dtype != DType::kFloat64 && classes % vector == 0 && classes <= 1024 &&
      (!is_dense || spec.inputs[1].dtype == dtype)) {
    if (row_function == RowFunction::kSoftmaxGrad) {
      return {classes <= 512 ? "gradients_held_512" : "gradients_held_1024",
              kWarp, vector};
    }
    if (row_function == RowFunction::kSoftmax) {
      return {classes <= 512 ? "softmax_held_512" : "softmax_held_1024", kWarp,
              vector};
    }
    return {classes <= 512 ? "rows_held_512" : "rows_held_1024", kWarp, vector};
  }
  // A warp or less computes a row that its lanes read in few steps; a block
  // computes a longer row.
  return {dtype == DType::kFloat64 ? "rows_double" : "rows_float",
          classes > kShortRow ? int64_t{RowParameters::kThreads} : kWarp, 1};
}

LaunchShape ShapeOf(const RowParameters& parameters, const RowPlan& plan) {
  LaunchShape shape;
  while (shape.block[0] < plan.lanes_max &&
         shape.block[0] * plan.lane_elements < parameters.classes) {
    shape.block[0] *= 2;
  }
  shape.block[1] = RowParameters::kThreads / shape.block[0];
  shape.grid[0] = static_cast<uint32_t>((parameters.rows + shape.block[1] - 1) /
                                        shape.block[1]);
  return shape;
}

KernelOr MakeRows(const KernelSpec& spec, const KernelTarget& target,
                  RowFunction row_function) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsFloating(dtype)) return Unsupported(spec);
  const bool is_sparse = row_function == RowFunction::kSparseCrossEntropy ||
                         row_function == RowFunction::kSparseCrossEntropyGrad;
  if (is_sparse && spec.inputs[1].dtype != DType::kInt32 &&
      spec.inputs[1].dtype != DType::kInt64) {
    return Unsupported(spec);
  }
  const Shape& logits = spec.inputs[0].shape;
  RowParameters parameters = {};
  parameters.function = row_function;
  parameters.classes = logits.dim(logits.rank() - 1);
  parameters.rows = logits.ElementCountInRange(0, logits.rank() - 1);
  const RowPlan plan = PlanRows(spec, row_function, parameters.classes);
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindFunction(target, softmax_image(), plan.function));
  const LaunchShape shape = ShapeOf(parameters, plan);
  const bool is_softmax = row_function == RowFunction::kSoftmax ||
                          row_function == RowFunction::kLogSoftmax ||
                          row_function == RowFunction::kSoftmaxGrad;
  return MakeDeviceKernel(
      target,
      [function, shape, parameters](const DeviceRun& run) mutable {
        parameters.logits = run.input(0);
        const size_t input_count = run.arguments.inputs.size();
        if (input_count > 1) parameters.labels = run.input(1);
        if (input_count > 2) parameters.gradient = run.input(2);
        parameters.to = run.output(0);
        parameters.fault = run.fault;
        return run.Launch(function, shape, parameters);
      },
      // Each thread reads its elements for the last time before it writes them.
      {.shared_inputs = is_softmax ? ElementwiseSharing(spec) : 0,
       .has_data_errors = is_sparse});
}

}  // namespace

void RegisterRowKernels(KernelRegistry* registry, const KernelTarget& target) {
  const auto add = [&](absl::string_view op, RowFunction function) {
    RegisterDevice(
        registry, target, op,
        [function](const KernelSpec& spec, const KernelTarget& where) {
          return MakeRows(spec, where, function);
        });
  };
  add("Softmax", RowFunction::kSoftmax);
  add("SoftmaxGrad", RowFunction::kSoftmaxGrad);
  add("LogSoftmax", RowFunction::kLogSoftmax);
  add("SoftmaxCrossEntropy", RowFunction::kCrossEntropy);
  add("SoftmaxCrossEntropyGrad", RowFunction::kCrossEntropyGrad);
  add("SparseSoftmaxCrossEntropy", RowFunction::kSparseCrossEntropy);
  add("SparseSoftmaxCrossEntropyGrad", RowFunction::kSparseCrossEntropyGrad);
}

}  // namespace muster::internal
