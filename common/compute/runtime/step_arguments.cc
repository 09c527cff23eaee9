#include "common/compute/runtime/step_arguments.h"

#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_memory.h"
#include "common/core/device/pinned_memory.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/place.h"

namespace muster {
namespace {

// A longer copy to the device counts as hanging.
constexpr absl::Duration kUploadTimeout = absl::Minutes(10);

}  // namespace

absl::StatusOr<std::unique_ptr<StepArguments>> StepArguments::Create(
    absl::Span<const TensorType> types, std::vector<Use> uses,
    absl::string_view name, Device* device, DeviceStream* stream,
    DeviceStream* uploads) {
  auto arguments = std::unique_ptr<StepArguments>(
      new StepArguments(std::move(uses), device, stream, uploads));
  DeviceMemory& memory = device->memory();
  for (size_t i = 0; i < types.size(); ++i) {
    if (arguments->uses_[i] != Use::kUpload) continue;
    const TensorType& type = types[i];
    ASSIGN_OR_RETURN(
        std::shared_ptr<Buffer> buffer,
        memory.Allocate(type.shape.element_count() * SizeOf(type.dtype),
                        {"arguments of graph", name}));
    memory.NoteUse(*buffer, stream);
    arguments->uploaded_[i] = Tensor(type.dtype, type.shape, std::move(buffer));
    if (arguments->is_uploaded_ != nullptr) continue;
    ASSIGN_OR_RETURN(arguments->is_uploaded_, device->CreateEvent());
  }
  return arguments;
}

StepArguments::StepArguments(std::vector<Use> uses, Device* device,
                             DeviceStream* stream, DeviceStream* uploads)
    : uses_(std::move(uses)),
      device_(*device),
      stream_(*stream),
      uploads_(uploads),
      sources_(uses_.size()),
      staging_(uses_.size()),
      uploaded_(uses_.size()) {}

absl::Status StepArguments::Stage(absl::Span<const Tensor> arguments) {
  absl::Status status;
  for (size_t i = 0; i < arguments.size() && status.ok(); ++i) {
    if (uses_[i] != Use::kNone) status = StageOne(i, arguments[i]);
  }
  if (status.ok() && is_uploaded_ != nullptr) status = Upload();
  if (!status.ok()) Cancel();
  return status;
}

absl::Status StepArguments::StageOne(size_t i, const Tensor& argument) {
  if (argument.dtype() == DType::kString ||
      argument.place().kind == PlaceKind::kPinnedHost) {
    sources_[i] = argument;
    return absl::OkStatus();
  }
  Tensor& staging = staging_[i];
  if (!staging.IsValid()) {
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                     device_.pinned_memory().Allocate(argument.size_bytes()));
    staging = Tensor(argument.dtype(), argument.shape(), std::move(buffer));
  }
  if (argument.size_bytes() > 0) {
    std::memcpy(staging.mutable_raw_data(), argument.raw_data(),
                argument.size_bytes());
  }
  sources_[i] = staging;
  return absl::OkStatus();
}

absl::Status StepArguments::Upload() {
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i] != Use::kUpload) continue;
    RETURN_IF_ERROR(uploads_->Copy(sources_[i], &uploaded_[i]));
  }
  RETURN_IF_ERROR(uploads_->Record(is_uploaded_.get()));
  return stream_.Wait(*is_uploaded_);
}

void StepArguments::Cancel() {
  if (is_uploaded_ != nullptr) {
    // The caller already has the error of the device.
    (void)uploads_->Drain(Clock::Real()->Now() + kUploadTimeout,
                          "the arguments of a step");
  }
  Release();
}

void StepArguments::Release() {
  for (Tensor& source : sources_) source = Tensor();
}

}  // namespace muster
