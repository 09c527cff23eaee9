#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/random_image.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/random_position.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

KernelOr MakeRandom(const KernelSpec& spec, const KernelTarget& target,
                    Distribution distribution) {
  if (!IsFloating(spec.outputs[0].dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindFunction(target, random_image(), "draw_random"));
  const int64_t count = spec.outputs[0].shape.element_count();
  return MakeDeviceKernel(target, [=](const DeviceRun& run) {
    const RandomParameters parameters = {
        .count = count,
        .to = run.output(0),
        .seed = static_cast<const int64_t*>(run.input(0).data),
        .first = FirstRandomElement(run.arguments),
        .distribution = distribution};
    return run.Launch(function, ThreadForEach(count), parameters);
  });
}

// StepSeed has no input, FoldInSeed has a seed and an attribute.
KernelOr MakeSeed(const KernelSpec& spec, const KernelTarget& target) {
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindFunction(target, random_image(), "make_seed"));
  const auto data =
      static_cast<uint64_t>(spec.attributes.GetOr<int64_t>("data", 0));
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) {
        const bool is_step_seed = run.arguments.inputs.empty();
        const SeedParameters parameters = {
            .from = is_step_seed
                        ? nullptr
                        : static_cast<const int64_t*>(run.input(0).data),
            .to = static_cast<int64_t*>(run.output(0).data),
            .data = is_step_seed ? run.arguments.step_seed : data};
        return run.Launch(function, LaunchShape(), parameters);
      },
      {.shared_inputs = ElementwiseSharing(spec)});
}

}  // namespace

void RegisterRandomKernels(KernelRegistry* registry,
                           const KernelTarget& target) {
  const auto add = [&](absl::string_view op, Distribution distribution) {
    RegisterDevice(
        registry, target, op,
        [distribution](const KernelSpec& spec, const KernelTarget& where) {
          return MakeRandom(spec, where, distribution);
        });
  };
  add("RandomUniform", Distribution::kUniform);
  add("RandomNormal", Distribution::kNormal);
  add("TruncatedNormal", Distribution::kTruncatedNormal);
  RegisterDevice(registry, target, "StepSeed", MakeSeed);
  RegisterDevice(registry, target, "FoldInSeed", MakeSeed);
}

}  // namespace muster::internal
