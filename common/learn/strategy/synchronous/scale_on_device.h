#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_SCALE_ON_DEVICE_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_SCALE_ON_DEVICE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/pack_memory.h"

namespace muster {

// As CopyScaled(), for numbers of any dtype in the memory of `device`. Enqueues
// on `stream`. Divides integers as ScaleElements() does. `from` and `to` may be
// the same memory.
//   errors  of the device
absl::Status CopyScaledOnDevice(DType dtype, const void* from,
                                const PackScale& scale, int64_t count, void* to,
                                Device* device, DeviceStream* stream);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_SCALE_ON_DEVICE_H_
