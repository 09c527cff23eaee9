#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_STEP_TIMEOUT_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_STEP_TIMEOUT_H_

#include "absl/time/time.h"

namespace muster {

// A step that takes longer counts as hanging.
inline constexpr absl::Duration kStepTimeout = absl::Minutes(10);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_STEP_TIMEOUT_H_
