#ifndef COMMON_CORE_DEVICE_SIMULATED_GRAPH_FUNCTIONS_H_
#define COMMON_CORE_DEVICE_SIMULATED_GRAPH_FUNCTIONS_H_

#include "common/core/device/driver/driver_api.h"

namespace muster::simulated {

// Fills in MUSTER_DRIVER_GRAPH_FUNCTIONS, for the machine that exists.
void SetGraphFunctions(driver::DriverApi* api);

}  // namespace muster::simulated

#endif  // COMMON_CORE_DEVICE_SIMULATED_GRAPH_FUNCTIONS_H_
