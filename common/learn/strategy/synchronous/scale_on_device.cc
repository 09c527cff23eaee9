#include "common/learn/strategy/synchronous/scale_on_device.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/device_code/scale_image.h"
#include "common/compute/kernels/cuda/device_code/scale_parameters.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/driver/launch_shape.h"

namespace muster {
namespace {

constexpr uint32_t kThreads = 256;

absl::string_view KernelOf(DType dtype) {
  if (dtype == DType::kFloat64) return "scale_double";
  return IsFloating(dtype) ? "scale_float" : "scale_integer";
}

}  // namespace

absl::Status CopyScaledOnDevice(DType dtype, const void* from,
                                const PackScale& scale, int64_t count, void* to,
                                Device* device, DeviceStream* stream) {
  const double factor = scale.value;
  const size_t size_bytes = count * SizeOf(dtype);
  if (size_bytes == 0) return absl::OkStatus();
  const bool is_known = scale.on_device == nullptr;
  if (is_known && factor == 0) return stream->Fill(to, 0, size_bytes);
  if (is_known && factor == 1) {
    return from == to ? absl::OkStatus() : stream->Copy(from, to, size_bytes);
  }
  ASSIGN_OR_RETURN(
      const KernelFunction kernel,
      device->FindKernel(internal::scale_image(), KernelOf(dtype)));
  const auto type = static_cast<internal::ElementType>(dtype);
  internal::ScaleParameters parameters{
      .count = count,
      .from = {const_cast<void*>(from), type},
      .to = {to, type},
      .factor = factor,
      .divisor = std::max<int64_t>(1, std::llround(1 / factor)),
      .factor_on_device = scale.on_device};
  LaunchShape shape;
  shape.grid[0] = static_cast<uint32_t>((count + kThreads - 1) / kThreads);
  shape.block[0] = kThreads;
  const KernelArgument arguments[] = {&parameters};
  return stream->Launch(kernel, shape, arguments);
}

}  // namespace muster
