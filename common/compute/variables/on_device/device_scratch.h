#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_SCRATCH_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_SCRATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"

namespace muster {

// Memory of a device for the work of one stream. Grows as needed and is reused
// in later steps.
class DeviceScratch {
 public:
  // Returns at least `size_bytes` bytes, with undefined content.
  //   as DeviceMemory::Allocate()
  absl::StatusOr<uint8_t*> Get(Device* device, DeviceStream* stream,
                               size_t size_bytes);
  // The memory that Get() returned last. Requires a call of Get().
  const uint8_t* data() const { return buffer_->data(); }

 private:
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_SCRATCH_H_
