#ifndef COMMON_CORE_DEVICE_SIMULATED_ERROR_NAMES_H_
#define COMMON_CORE_DEVICE_SIMULATED_ERROR_NAMES_H_

#include "common/core/device/driver/driver_api.h"

namespace muster::simulated {

// As cuGetErrorName(): "CUDA_ERROR_INVALID_VALUE".
const char* ErrorName(driver::Result result);

}  // namespace muster::simulated

#endif  // COMMON_CORE_DEVICE_SIMULATED_ERROR_NAMES_H_
