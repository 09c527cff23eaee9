#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_GRADIENT_READER_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_GRADIENT_READER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/variables/loss_scale_session.h"
#include "common/compute/variables/on_device/device_update.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Enqueues a check of a gradient in the memory of the device. Sets *found to 1
// if an element is not finite, and leaves it unchanged otherwise.
//   errors  of the device
absl::Status FindNonFinite(const Tensor& gradient, Device* device,
                           DeviceStream* stream, int32_t* found);

// Reads gradients in the memory of a device or of the host. Each call waits for
// the work of the stream.
//
// Errors are those of the device. Not thread-safe.
class DeviceGradientReader final : public GradientReader {
 public:
  // Borrows `device` and `stream`.
  DeviceGradientReader(Device* device, DeviceStream* stream)
      : device_(*device), stream_(*stream) {}

  absl::StatusOr<bool> AreFinite(absl::Span<const Tensor> gradients) override;
  absl::StatusOr<float> ReadScalar(const Tensor& scalar) override;

 private:
  // Waits for the stream and copies.
  absl::Status CopyToHost(const void* from, void* to, size_t size_bytes);

  Device& device_;
  DeviceStream& stream_;
  DeviceScratch found_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_GRADIENT_READER_H_
