#include "common/compute/kernels/cuda/step_gate.h"

#include <atomic>

#include "absl/memory/memory.h"
#include "common/compute/kernels/cuda/device_code/gate_image.h"
#include "common/compute/kernels/cuda/device_code/gate_parameters.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/driver/launch_shape.h"

namespace muster {

using internal::BeginStepParameters;
using internal::CheckWeightParameters;
using internal::DeviceGate;

absl::StatusOr<std::unique_ptr<StepGate>> StepGate::Create(
    Device* device, DeviceStream* stream) {
  auto gate = absl::WrapUnique(new StepGate(device, stream));
  ASSIGN_OR_RETURN(gate->memory_,
                   device->memory().Allocate(
                       sizeof(DeviceGate), {"gate of steps", device->name()}));
  device->memory().NoteUse(*gate->memory_, stream);
  ASSIGN_OR_RETURN(gate->pinned_,
                   device->pinned_memory().Allocate(sizeof(int32_t)));
  RETURN_IF_ERROR(gate->Open());
  return gate;
}

absl::Status StepGate::Open() {
  std::atomic_ref<int32_t>(*closed_by_word()).store(0);
  const DeviceGate open = {
      .step = step_, .is_closed = 0, .closed_by = closed_by_word()};
  // Pageable memory: the source has been read when the call returns.
  return stream_.Copy(&open, memory_->data(), sizeof(open));
}

template <typename Parameter>
absl::Status StepGate::Launch(absl::string_view kernel, Parameter parameter) {
  ASSIGN_OR_RETURN(const KernelFunction function,
                   device_.FindKernel(internal::gate_image(), kernel));
  const KernelArgument addresses[] = {&parameter};
  return stream_.Launch(function, LaunchShape(), addresses);
}

absl::StatusOr<int32_t> StepGate::BeginStep() {
  RETURN_IF_ERROR(Launch("begin_step", BeginStepParameters{on_device()}));
  step_ = internal::NextStep(step_);
  return step_;
}

absl::Status StepGate::CheckWeight(const uint8_t* weight) {
  return Launch("check_weight",
                CheckWeightParameters{reinterpret_cast<const float*>(weight),
                                      on_device()});
}

int32_t StepGate::closed_by() const {
  return std::atomic_ref<int32_t>(*closed_by_word()).load();
}

}  // namespace muster
