#ifndef COMMON_NET_COLLECTIVES_ON_DEVICE_DEVICE_CODE_REDUCE_ARRAYS_PARAMETERS_H_
#define COMMON_NET_COLLECTIVES_ON_DEVICE_DEVICE_CODE_REDUCE_ARRAYS_PARAMETERS_H_

#include "common/core/base/host_device.h"

// The parameter of the kernels in reduce_arrays.cu. Addresses are device
// addresses.
namespace muster::internal {

// Values are those of ReduceOp. A mean is a sum with a divisor.
enum class ArrayReduction : int32_t { kSum = 0, kMin = 2, kMax = 3, kProd = 4 };

// Each outputs[k][i] is the reduction of all inputs[...][i], from the first to
// the last. Outputs may be inputs. Blocks have kThreads threads, each of which
// reduces kThreadBytes of elements.
struct ReduceArraysParameters {
  static constexpr int kArraysMax = 16;
  static constexpr int kThreads = 256;
  static constexpr int kThreadBytes = 32;
  static constexpr int kAccessBytes = 16;  // Size of one load or store.

  int64_t count;
  const void* inputs[kArraysMax];
  int32_t input_count;
  ArrayReduction reduction;
  int32_t divisor;  // 1: none.
  int32_t output_count;
  void* outputs[kArraysMax];
  bool is_aligned;  // All arrays begin at a multiple of kAccessBytes.
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_ON_DEVICE_DEVICE_CODE_REDUCE_ARRAYS_PARAMETERS_H_
