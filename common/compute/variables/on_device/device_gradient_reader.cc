#include "common/compute/variables/on_device/device_gradient_reader.h"

#include <algorithm>
#include <cstdint>

#include "common/compute/kernels/cuda/device_code/update_image.h"
#include "common/compute/kernels/cuda/device_code/update_parameters.h"
#include "common/compute/variables/on_device/step_timeout.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/system/clock.h"

namespace muster {

absl::StatusOr<bool> DeviceGradientReader::AreFinite(
    absl::Span<const Tensor> gradients) {
  int32_t found = 0;
  ASSIGN_OR_RETURN(uint8_t* const memory,
                   found_.Get(&device_, &stream_, sizeof(found)));
  RETURN_IF_ERROR(stream_.Fill(memory, 0, sizeof(found)));
  for (const Tensor& gradient : gradients) {
    if (gradient.is_on_host()) {
      ASSIGN_OR_RETURN(const bool is_finite,
                       GradientReader::AreFinite({&gradient, 1}));
      if (!is_finite) return false;
      continue;
    }
    RETURN_IF_ERROR(FindNonFinite(gradient, &device_, &stream_,
                                  reinterpret_cast<int32_t*>(memory)));
  }
  RETURN_IF_ERROR(CopyToHost(memory, &found, sizeof(found)));
  return found == 0;
}

absl::Status FindNonFinite(const Tensor& gradient, Device* device,
                           DeviceStream* stream, int32_t* found) {
  constexpr int64_t kThreads = 256;
  constexpr int64_t kBlocksMax = 256;
  const int64_t count = gradient.element_count();
  if (count == 0) return absl::OkStatus();
  const int64_t block_count =
      std::min(kBlocksMax, (count + kThreads - 1) / kThreads);
  internal::FindNonFiniteParameters parameters{
      .count = count,
      .thread_count = block_count * kThreads,
      .values = {const_cast<uint8_t*>(gradient.address()),
                 static_cast<internal::ElementType>(gradient.dtype())},
      .found = found};
  ASSIGN_OR_RETURN(
      const KernelFunction kernel,
      device->FindKernel(internal::update_image(), "find_non_finite"));
  LaunchShape shape;
  shape.grid[0] = static_cast<uint32_t>(block_count);
  shape.block[0] = kThreads;
  const KernelArgument arguments[] = {&parameters};
  return stream->Launch(kernel, shape, arguments);
}

absl::StatusOr<float> DeviceGradientReader::ReadScalar(const Tensor& scalar) {
  if (scalar.is_on_host()) return GradientReader::ReadScalar(scalar);
  float value = 0;
  RETURN_IF_ERROR(CopyToHost(scalar.address(), &value, sizeof(value)));
  return value;
}

absl::Status DeviceGradientReader::CopyToHost(const void* from, void* to,
                                              size_t size_bytes) {
  RETURN_IF_ERROR(stream_.Drain(Clock::Real()->Now() + kStepTimeout,
                                "the gradients of a step"));
  // Pageable memory: the copy is complete when the call returns.
  return stream_.Copy(from, to, size_bytes);
}

}  // namespace muster
