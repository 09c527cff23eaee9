#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/compute/kernels/attention.h"
#include "common/compute/kernels/cuda/cudnn/cudnn.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_memory.h"

// Attention and its gradient by cuDNN.
namespace muster::internal {
namespace {

// The numbers of inputs without the bias, which follows them.
constexpr size_t kForwardInputs = 3;
constexpr size_t kGradientInputs = 6;

// `first_input` is the index of q, which k and v follow. `bias` is the index of
// the bias, if there is one.
absl::StatusOr<AttentionProblem> AttentionProblemOf(const KernelSpec& spec,
                                                    size_t first_input,
                                                    size_t bias) {
  const TensorType& q = spec.inputs[first_input];
  ASSIGN_OR_RETURN(
      const AttentionGeometry geometry,
      AttentionGeometry::Of(
          q, spec.inputs[first_input + 1], spec.inputs[first_input + 2],
          spec.inputs.size() > bias ? &spec.inputs[bias] : nullptr));
  return AttentionProblem{
      .dtype = q.dtype,
      .geometry = geometry,
      .scale = spec.attributes.GetOr<double>(kAttentionScaleAttribute, 1),
      .is_causal = spec.attributes.GetOr(kAttentionCausalAttribute, false)};
}

using AttentionOperands =
    absl::InlinedVector<void*, CudnnExecution::kOperandsMax>;

void AddBias(const KernelArguments& arguments, size_t bias,
             AttentionOperands* operands) {
  if (arguments.inputs.size() > bias) {
    operands->push_back(arguments.inputs[bias]->address());
  }
}

KernelOr MakeAttention(const KernelSpec& spec, const KernelTarget& target,
                       const std::shared_ptr<Cudnn>& library) {
  ASSIGN_OR_RETURN(const AttentionProblem problem,
                   AttentionProblemOf(spec, 0, kForwardInputs));
  ASSIGN_OR_RETURN(std::shared_ptr<CudnnExecution> attention,
                   CudnnExecution::Create(library, problem));
  const size_t scratch_bytes = attention->workspace_bytes();
  return MakeDeviceKernel(
      target,
      [attention = std::move(attention)](const DeviceRun& run) {
        const KernelArguments& arguments = run.arguments;
        AttentionOperands operands = {
            arguments.inputs[0]->address(), arguments.inputs[1]->address(),
            arguments.inputs[2]->address(), arguments.outputs[0]->address(),
            arguments.outputs[1]->address()};
        AddBias(arguments, kForwardInputs, &operands);
        return attention->Run(arguments.stream, operands,
                              arguments.scratch.data());
      },
      {.scratch_bytes = scratch_bytes});
}

// True if cuDNN's heuristics choose engines whose results are reproducible.
// cuDNN's notes on engines do not show whether they are. On later GPUs other
// engines must be requested.
bool HasReproducibleGradient(const Device& device) {
  const int generation = device.description().compute_capability / 10;
  return generation == 8 || generation == 9;
}

KernelOr MakeAttentionGrad(const KernelSpec& spec, const KernelTarget& target,
                           const std::shared_ptr<Cudnn>& library) {
  if (!HasReproducibleGradient(*target.device)) return Unsupported(spec);
  ASSIGN_OR_RETURN(AttentionProblem problem,
                   AttentionProblemOf(spec, 1, kGradientInputs));
  problem.is_gradient = true;
  ASSIGN_OR_RETURN(std::shared_ptr<CudnnExecution> gradient,
                   CudnnExecution::Create(library, problem));
  // The sums of the rows follow the workspace in scratch memory.
  constexpr size_t kAlignment = DeviceMemory::kAlignmentBytes;
  const size_t workspace_bytes =
      (gradient->workspace_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  const size_t sums_bytes =
      static_cast<size_t>(problem.geometry.StatisticsShape().element_count()) *
      sizeof(float);
  return MakeDeviceKernel(
      target,
      [gradient = std::move(gradient), workspace_bytes](const DeviceRun& run) {
        const KernelArguments& arguments = run.arguments;
        uint8_t* const scratch = arguments.scratch.data();
        AttentionOperands operands;
        for (size_t i = 0; i < kGradientInputs; ++i) {
          operands.push_back(arguments.inputs[i]->address());
        }
        for (size_t i = 0; i < 3; ++i) {
          operands.push_back(arguments.outputs[i]->address());
        }
        operands.push_back(scratch + workspace_bytes);
        AddBias(arguments, kGradientInputs, &operands);
        return gradient->Run(arguments.stream, operands, scratch);
      },
      {.scratch_bytes = workspace_bytes + sums_bytes});
}

}  // namespace

void RegisterCudnnAttentionKernels(KernelRegistry* registry,
                                   const KernelTarget& target,
                                   const std::shared_ptr<Cudnn>& library) {
  RegisterDevice(registry, target, kFusedAttentionOp,
                 [library](const KernelSpec& spec, const KernelTarget& where) {
                   return MakeAttention(spec, where, library);
                 });
  RegisterDevice(registry, target, kFusedAttentionGradOp,
                 [library](const KernelSpec& spec, const KernelTarget& where) {
                   return MakeAttentionGrad(spec, where, library);
                 });
}

}  // namespace muster::internal
