#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/recurrence_image.h"
#include "common/compute/kernels/cuda/device_code/recurrence_parameters.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/recurrence.h"
#include "common/compute/kernels/recurrence_arguments.h"
#include "common/compute/kernels/row_activation.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/recurrence_options.h"

// Recurrence and RecurrenceGrad. Operands of 16 bits are converted to float
// and back.
namespace muster::internal {
namespace {

// The shared memory that every device grants a block by default.
constexpr size_t kSharedBytesMax = 48 << 10;
constexpr size_t kInPlace = std::numeric_limits<size_t>::max();

// The part of a run that does not depend on the data. Offsets are in the
// scratch memory.
struct Plan {
  size_t Reserve(size_t size_bytes) {
    constexpr size_t kAlignment = 256;
    const size_t offset = scratch_bytes;
    scratch_bytes += (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }

  RecurrenceOptions options;
  RecurrenceParameters parameters = {};
  LaunchShape shape;
  DeviceFunction function;
  size_t memory_offset = kInPlace;  // kInPlace: shared memory.
  // For the gradient: transposes the kernel to [gates units, units].
  WordCopy transpose;
  CopyParameters transposition = {};
  size_t transposed_offset = kInPlace;
  // For operands that are converted.
  Conversion convert;
  std::vector<size_t> input_offsets;
  std::vector<size_t> output_offsets;
  size_t scratch_bytes = 0;
};

bool IsGradient(const KernelSpec& spec) { return spec.op == "RecurrenceGrad"; }

void PlanLaunch(size_t element_bytes, Plan* plan) {
  RecurrenceParameters& parameters = plan->parameters;
  const recurrence::Extents& extents = parameters.extents;
  // Few rows get one block each. Of many rows, several share a block and the
  // kernel elements that it reads.
  parameters.rows_per_block = extents.batch <= 128   ? 1
                              : extents.batch <= 256 ? 2
                                                     : 4;
  const int64_t block_count = (extents.batch + parameters.rows_per_block - 1) /
                              parameters.rows_per_block;
  constexpr int64_t kWarp = 32;
  const int64_t width = plan->options.gate_count() * extents.units;
  plan->shape.grid[0] = static_cast<uint32_t>(block_count);
  plan->shape.block[0] = static_cast<uint32_t>(std::min<int64_t>(
      RecurrenceParameters::kThreadsMax, (width + kWarp - 1) / kWarp * kWarp));
  const size_t block_bytes =
      recurrence::WorkspaceSize(parameters.rows_per_block, extents.units) *
      element_bytes;
  if (block_bytes <= kSharedBytesMax) {
    plan->shape.shared_bytes = static_cast<uint32_t>(block_bytes);
  } else {
    plan->memory_offset = plan->Reserve(block_count * block_bytes);
  }
}

// Transposes the kernel so that adjacent threads read adjacent elements in both
// products.
absl::Status PlanTransposition(const KernelTarget& target, size_t element_bytes,
                               Plan* plan) {
  ASSIGN_OR_RETURN(plan->transpose, CopyingWords(target));
  const int64_t units = plan->parameters.extents.units;
  const int64_t width = plan->options.gate_count() * units;
  CopyParameters& copy = plan->transposition;
  copy.count = width * units;
  copy.word_bytes = static_cast<int32_t>(element_bytes);
  copy.from_layout = DeviceLayoutOf(StridedIndex({width, units}, {1, width}));
  copy.to_layout = DeviceLayoutOf(DenseIndex(Shape({copy.count})));
  plan->transposed_offset = plan->Reserve(copy.count * element_bytes);
  return absl::OkStatus();
}

void PlanConversions(const KernelSpec& spec, Plan* plan) {
  const auto offset_of = [&](const TensorType& type) {
    const bool is_converted =
        type.dtype == DType::kBfloat16 || type.dtype == DType::kFloat16;
    return is_converted
               ? plan->Reserve(type.shape.element_count() * sizeof(float))
               : kInPlace;
  };
  for (const TensorType& type : spec.inputs) {
    plan->input_offsets.push_back(offset_of(type));
  }
  for (const TensorType& type : spec.outputs) {
    plan->output_offsets.push_back(offset_of(type));
  }
}

absl::StatusOr<Plan> MakePlan(const KernelSpec& spec,
                              const KernelTarget& target, bool is_double) {
  Plan plan;
  ASSIGN_OR_RETURN(plan.options, ReadRecurrenceOptions(spec.attributes));
  const Shape& outputs =
      IsGradient(spec) ? spec.inputs[0].shape : spec.outputs[0].shape;
  plan.parameters.form = plan.options;
  plan.parameters.extents = {outputs.dim(0), outputs.dim(1), outputs.dim(2)};
  plan.parameters.activation = FindCellActivation(plan.options.activation);
  plan.parameters.recurrent_activation =
      FindCellActivation(plan.options.recurrent_activation);
  ASSIGN_OR_RETURN(
      plan.function,
      FindFunction(
          target, recurrence_image(),
          absl::StrCat(IsGradient(spec) ? "recurrence_gradient" : "recurrence",
                       is_double ? "_double" : "_float")));
  const size_t element_bytes = is_double ? sizeof(double) : sizeof(float);
  PlanLaunch(element_bytes, &plan);
  if (IsGradient(spec)) {
    RETURN_IF_ERROR(PlanTransposition(target, element_bytes, &plan));
  }
  PlanConversions(spec, &plan);
  ASSIGN_OR_RETURN(plan.convert, Converting(target));
  return plan;
}

// The operands of one run, as arrays of C.
template <typename C>
class RecurrenceOperands {
 public:
  RecurrenceOperands(const Plan& plan, const DeviceRun& run)
      : plan_(plan), run_(run) {}

  C* input_data(int i) const {
    return At(plan_.input_offsets[i], run_.input(i));
  }
  C* output_data(int i) const {
    return At(plan_.output_offsets[i], run_.output(i));
  }
  const bool* mask(int i) const {
    return static_cast<const bool*>(run_.input(i).data);
  }

  absl::Status ConvertInputs() const {
    for (size_t i = 0; i < plan_.input_offsets.size(); ++i) {
      if (plan_.input_offsets[i] == kInPlace) continue;
      RETURN_IF_ERROR(plan_.convert(
          run_, run_.arguments.inputs[i]->element_count(), run_.input(i),
          {input_data(static_cast<int>(i)), ElementType::kFloat32}));
    }
    return absl::OkStatus();
  }
  absl::Status ConvertOutputs() const {
    for (size_t i = 0; i < plan_.output_offsets.size(); ++i) {
      if (plan_.output_offsets[i] == kInPlace) continue;
      RETURN_IF_ERROR(plan_.convert(
          run_, run_.arguments.outputs[i]->element_count(),
          {output_data(static_cast<int>(i)), ElementType::kFloat32},
          run_.output(i)));
    }
    return absl::OkStatus();
  }

 private:
  C* At(size_t offset, const DeviceElements& elements) const {
    return static_cast<C*>(offset == kInPlace
                               ? elements.data
                               : run_.arguments.scratch.data() + offset);
  }

  const Plan& plan_;
  const DeviceRun& run_;
};

template <typename C>
absl::Status RunForward(const Plan& plan, const DeviceRun& run,
                        RecurrenceOperands<C>& operands,
                        const RecurrenceParameters& parameters) {
  RecurrenceForwardParameters<C> forward = {
      parameters, recurrence::MakeForwardOperands<C>(plan.options, operands)};
  forward.common.kernel = operands.input_data(1);
  return run.Launch(plan.function, plan.shape, forward);
}

template <typename C>
absl::Status RunBackward(const Plan& plan, const DeviceRun& run,
                         RecurrenceOperands<C>& operands,
                         const RecurrenceParameters& parameters) {
  CopyParameters copy = plan.transposition;
  copy.from = operands.input_data(1);
  copy.to = run.arguments.scratch.data() + plan.transposed_offset;
  RETURN_IF_ERROR(plan.transpose(run, copy));
  RecurrenceBackwardParameters<C> backward = {
      parameters, recurrence::MakeBackwardOperands<C>(plan.options, operands)};
  backward.common.kernel = copy.to;
  return run.Launch(plan.function, plan.shape, backward);
}

template <typename C>
KernelOr MakeFor(const KernelSpec& spec, const KernelTarget& target) {
  constexpr bool kIsDouble = sizeof(C) == sizeof(double);
  ASSIGN_OR_RETURN(Plan plan, MakePlan(spec, target, kIsDouble));
  const size_t scratch_bytes = plan.scratch_bytes;
  return MakeDeviceKernel(
      target,
      [plan = std::move(plan),
       is_gradient = IsGradient(spec)](const DeviceRun& run) -> absl::Status {
        RecurrenceOperands<C> operands(plan, run);
        RETURN_IF_ERROR(operands.ConvertInputs());
        RecurrenceParameters parameters = plan.parameters;
        if (plan.memory_offset != kInPlace) {
          parameters.memory = run.arguments.scratch.data() + plan.memory_offset;
        }
        RETURN_IF_ERROR(is_gradient
                            ? RunBackward(plan, run, operands, parameters)
                            : RunForward(plan, run, operands, parameters));
        return operands.ConvertOutputs();
      },
      {.scratch_bytes = scratch_bytes});
}

KernelOr MakeRecurrence(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsFloating(dtype)) return Unsupported(spec);
  return dtype == DType::kFloat64 ? MakeFor<double>(spec, target)
                                  : MakeFor<float>(spec, target);
}

}  // namespace

void RegisterRecurrenceKernels(KernelRegistry* registry,
                               const KernelTarget& target) {
  RegisterDevice(registry, target, "Recurrence", MakeRecurrence);
  RegisterDevice(registry, target, "RecurrenceGrad", MakeRecurrence);
}

}  // namespace muster::internal
