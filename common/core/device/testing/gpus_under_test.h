#ifndef COMMON_CORE_DEVICE_TESTING_GPUS_UNDER_TEST_H_
#define COMMON_CORE_DEVICE_TESTING_GPUS_UNDER_TEST_H_

#include "absl/status/status.h"

namespace muster {

// True if the environment variable MUSTER_TEST_GPU is "real". Tests use
// simulated GPUs otherwise.
bool TestsUseRealGpu();

// Gives DeviceSet::OfProcess() `count` logical devices: simulated GPUs, or
// equal shares of the first GPU of the machine. Call it before any test.
//   kUnavailable  there is no GPU; says why
absl::Status UseGpusUnderTest(int count);

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_TESTING_GPUS_UNDER_TEST_H_
