#include "common/compute/variables/on_device/device_loss_scale.h"

#include <cstddef>
#include <utility>

#include "absl/memory/memory.h"
#include "common/compute/kernels/cuda/device_code/update_image.h"
#include "common/compute/variables/loss_scale_session.h"
#include "common/compute/variables/on_device/device_gradient_reader.h"
#include "common/compute/variables/on_device/step_timeout.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_memory.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/pinned_memory.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {

absl::StatusOr<std::unique_ptr<DeviceLossScale>> DeviceLossScale::Create(
    Device* device, DeviceStream* stream) {
  auto scale = absl::WrapUnique(new DeviceLossScale(device, stream));
  ASSIGN_OR_RETURN(scale->state_,
                   device->memory().Allocate(sizeof(internal::LossScaleState),
                                             {"loss scale", device->name()}));
  device->memory().NoteUse(*scale->state_, stream);
  scale->gradient_ = Tensor(DType::kFloat32, Shape(), scale->state_,
                            offsetof(internal::LossScaleState, gradient));
  return scale;
}

absl::StatusOr<DeviceLossScale::Decision> DeviceLossScale::TakeDecision() {
  Decision decision;
  if (!free_.empty()) {
    decision = std::move(free_.back());
    free_.pop_back();
    return decision;
  }
  ASSIGN_OR_RETURN(decision.was_skipped,
                   device_.pinned_memory().Allocate(sizeof(int32_t)));
  ASSIGN_OR_RETURN(decision.done, device_.CreateEvent());
  return decision;
}

absl::Status DeviceLossScale::Decide(absl::Span<const Tensor> gradients,
                                     const Tensor& scale) {
  // LossScaleState records only one step before this one.
  MUSTER_CHECK(unsettled_count() <= 1);
  ASSIGN_OR_RETURN(uint8_t* const memory,
                   found_.Get(&device_, &stream_, sizeof(int32_t)));
  auto* const found = reinterpret_cast<int32_t*>(memory);
  bool are_finite = true;  // Of the gradients on the host.
  for (const Tensor& gradient : gradients) {
    if (!gradient.is_on_host() || !are_finite) continue;
    ASSIGN_OR_RETURN(are_finite, GradientReader().AreFinite({&gradient, 1}));
  }
  RETURN_IF_ERROR(stream_.Fill(found, are_finite ? 0 : 1, sizeof(*found)));
  for (const Tensor& gradient : gradients) {
    if (gradient.is_on_host()) continue;
    RETURN_IF_ERROR(FindNonFinite(gradient, &device_, &stream_, found));
  }
  ASSIGN_OR_RETURN(Decision decision, TakeDecision());
  internal::ChooseVariantParameters parameters{
      .found = found,
      .scale = reinterpret_cast<const float*>(scale.address()),
      .is_settled = unsettled_.empty() ? 1 : 0,
      .state = state(),
      .was_skipped = reinterpret_cast<int32_t*>(decision.was_skipped->data())};
  ASSIGN_OR_RETURN(
      const KernelFunction kernel,
      device_.FindKernel(internal::update_image(), "choose_variant"));
  const KernelArgument arguments[] = {&parameters};
  RETURN_IF_ERROR(stream_.Launch(kernel, LaunchShape(), arguments));
  RETURN_IF_ERROR(stream_.Record(decision.done.get()));
  unsettled_.push_back(std::move(decision));
  return absl::OkStatus();
}

absl::StatusOr<bool> DeviceLossScale::Settle() {
  MUSTER_CHECK(!unsettled_.empty());
  const absl::Status status = stream_.Await(
      *unsettled_.front().done, Clock::Real()->Now() + kStepTimeout,
      "whether the gradients of a step are finite");
  const bool was_skipped =
      status.ok() && *reinterpret_cast<const int32_t*>(
                         unsettled_.front().was_skipped->data()) != 0;
  Forget();
  RETURN_IF_ERROR(status);
  return was_skipped;
}

void DeviceLossScale::Forget() {
  MUSTER_CHECK(!unsettled_.empty());
  free_.push_back(std::move(unsettled_.front()));
  unsettled_.pop_front();
}

void DeviceLossScale::ForgetLast() {
  MUSTER_CHECK(!unsettled_.empty());
  free_.push_back(std::move(unsettled_.back()));
  unsettled_.pop_back();
}

}  // namespace muster
