#ifndef COMMON_NET_COLLECTIVES_ON_DEVICE_DEVICE_REDUCE_H_
#define COMMON_NET_COLLECTIVES_ON_DEVICE_DEVICE_REDUCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {

inline constexpr int kReducedOutputsMax = 16;

// Enqueues a reduction like Reduce() of reduce_kernels.h on `stream`, in memory
// of `device`. kMean divides by `divisor`. Writes the result to all outputs, of
// which there are 1 to kReducedOutputsMax. Outputs may be among the first 16
// inputs. Float16 and bfloat16 values are rounded once per kernel: after the
// first 16 inputs, and then after each 15 more.
//   kUnimplemented  as for CheckReducible()
//   others          errors of the device
absl::Status ReduceOnDevice(ReduceOp op, DType dtype, int64_t element_count,
                            absl::Span<const void* const> inputs, int divisor,
                            absl::Span<void* const> outputs, Device* device,
                            DeviceStream* stream);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_ON_DEVICE_DEVICE_REDUCE_H_
