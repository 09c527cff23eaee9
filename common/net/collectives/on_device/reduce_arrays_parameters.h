#ifndef COMMON_NET_COLLECTIVES_ON_DEVICE_REDUCE_ARRAYS_PARAMETERS_H_
#define COMMON_NET_COLLECTIVES_ON_DEVICE_REDUCE_ARRAYS_PARAMETERS_H_

#include "common/core/base/host_device.h"

// The parameter of the kernels of reduce_arrays.cu. Addresses are the device's.
namespace muster::internal {

// The numbers of ReduceOp; a mean is a sum that is divided.
enum class ArrayReduction : int32_t { kSum = 0, kMin = 2, kMax = 3, kProd = 4 };

// output[i] = the reduction of inputs[...][i], from the first to the last. The
// output may be one of the inputs. A thread for each element.
struct ReduceArraysParameters {
  static constexpr int kInputsMax = 16;

  int64_t count;
  const void* inputs[kInputsMax];
  int32_t input_count;
  ArrayReduction reduction;
  int32_t divisor;  // 1: none.
  void* output;
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_ON_DEVICE_REDUCE_ARRAYS_PARAMETERS_H_
