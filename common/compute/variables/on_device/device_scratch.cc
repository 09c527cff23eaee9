#include "common/compute/variables/on_device/device_scratch.h"

#include <algorithm>

#include "common/core/base/status_macros.h"

namespace muster {

absl::StatusOr<uint8_t*> DeviceScratch::Get(Device* device,
                                            DeviceStream* stream,
                                            size_t size_bytes) {
  if (buffer_ == nullptr || buffer_->size_bytes() < size_bytes) {
    buffer_ = nullptr;
    ASSIGN_OR_RETURN(buffer_,
                     device->memory().Allocate(
                         std::max<size_t>(size_bytes, 256),
                         {"working memory of updates", device->name()}));
    device->memory().NoteUse(*buffer_, stream);
  }
  return buffer_->data();
}

}  // namespace muster
