#include "common/learn/strategy/synchronous/device_trailer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_memory.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/pinned_memory.h"
#include "common/learn/strategy/synchronous/device_code/trailer_image.h"

namespace muster {

using internal::DecideParameters;
using internal::TrailerState;
using internal::WeighParameters;
using internal::WriteTrailerParameters;

absl::StatusOr<std::unique_ptr<DeviceTrailer>> DeviceTrailer::Create(
    Options options) {
  auto trailer = absl::WrapUnique(new DeviceTrailer(std::move(options)));
  RETURN_IF_ERROR(trailer->Allocate());
  return trailer;
}

absl::Status DeviceTrailer::Allocate() {
  Device& device = *options_.device;
  ASSIGN_OR_RETURN(state_, device.memory().Allocate(
                               sizeof(TrailerState),
                               {"end of steps of replicas", device.name()}));
  ASSIGN_OR_RETURN(end_word_, device.pinned_memory().Allocate(sizeof(int32_t)));
  std::memset(end_word_->data(), 0, sizeof(int32_t));
  for (std::unique_ptr<Event>& event : copied_) {
    ASSIGN_OR_RETURN(event, device.CreateEvent());
  }
  for (const Tensor& part : options_.parts) {
    auto& ring = rings_.emplace_back();
    for (std::shared_ptr<Buffer>& copy : ring) {
      ASSIGN_OR_RETURN(copy, device.pinned_memory().Allocate(
                                 std::max<size_t>(1, part.size_bytes())));
    }
  }
  return absl::OkStatus();
}

template <typename Parameter>
absl::Status DeviceTrailer::Launch(absl::string_view kernel,
                                   Parameter parameter) {
  ASSIGN_OR_RETURN(
      const KernelFunction function,
      options_.device->FindKernel(internal::trailer_image(), kernel));
  const KernelArgument addresses[] = {&parameter};
  return options_.stream->Launch(function, LaunchShape(), addresses);
}

absl::Status DeviceTrailer::Weigh(const float* weight) {
  return Launch("weigh",
                WeighParameters{.weight = weight,
                                .expected_weight = options_.expected_weight,
                                .state = state()});
}

absl::Status DeviceTrailer::Write(
    const std::array<float, internal::kTrailerFieldCount>& fields,
    bool is_weighed) {
  WriteTrailerParameters parameters{
      .fields = {},
      .is_weighed = is_weighed ? 1 : 0,
      .state = state(),
      .gate = options_.gate->on_device(),
      .to = reinterpret_cast<float*>(
          const_cast<uint8_t*>(options_.fields.address()))};
  std::copy(fields.begin(), fields.end(), parameters.fields);
  return Launch("write_trailer", parameters);
}

absl::Status DeviceTrailer::Decide() {
  MUSTER_CHECK(decided_count_ < kDecidedMax);
  RETURN_IF_ERROR(Launch(
      "decide",
      DecideParameters{
          .fields = reinterpret_cast<float*>(
              const_cast<uint8_t*>(options_.fields.address())),
          .expected_weight = options_.expected_weight,
          .end_word = reinterpret_cast<const int32_t*>(end_word_->data()),
          .state = state(),
          .gate = options_.gate->on_device()}));
  for (size_t i = 0; i < options_.parts.size(); ++i) {
    const Tensor& part = options_.parts[i];
    if (part.size_bytes() == 0) continue;
    RETURN_IF_ERROR(options_.stream->Copy(
        part.address(), rings_[i][next_]->data(), part.size_bytes()));
  }
  RETURN_IF_ERROR(options_.stream->Record(copied_[next_].get()));
  next_ = (next_ + 1) % kDecidedMax;
  ++decided_count_;
  return absl::OkStatus();
}

absl::Status DeviceTrailer::Await(absl::Time deadline) {
  MUSTER_CHECK(decided_count_ > 0);
  awaited_ = (next_ - decided_count_ + kDecidedMax) % kDecidedMax;
  --decided_count_;
  return options_.stream->Await(*copied_[awaited_], deadline,
                                "a step of all replicas");
}

}  // namespace muster
