#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_CODE_TRAILER_PARAMETERS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_CODE_TRAILER_PARAMETERS_H_

#include <cstdint>

#include "common/compute/kernels/cuda/device_code/device_elements.h"

// The values that replicas exchange at the end of a step, and the parameters of
// the kernels of trailer.cu, which run in one thread. Addresses are those of
// the device.
namespace muster::internal {

// The fields of a trailer, all float32. They are summed over all leaves.
enum TrailerField : int32_t {
  kLeavesWithData,
  kWeightedLeaves,
  kWeight,
  kStopRequests,
  kWantToStopAfter,
  // Replicas that allow a step to begin before the previous one is done.
  kLetStepsOverlap,
  kInvalidData,  // Leaves in whose data the device found an error.
  kTrailerSumCount,
  // Not a sum: 1 if the device applied the step. The kernel `decide` writes it.
  kIsApplied = kTrailerSumCount,
  kTrailerFieldCount,
};

// The state of a replica on a device between its kernels.
struct TrailerState {
  float weight;
  double contribution;  // weight / expected_weight.
  double gradient;      // Factor that turns combined gradients into their mean.
  double mean;          // 1 / leaves with data.
};

// Sets `weight` and `contribution` of the state.
struct WeighParameters {
  const float* weight;
  double expected_weight;
  TrailerState* state;
};

// Fills the fields of a leaf.
struct WriteTrailerParameters {
  float fields[kTrailerFieldCount];
  int32_t is_weighed;  // 1: takes kWeight from the state.
  const TrailerState* state;
  const DeviceGate* gate;  // Determines kInvalidData.
  float* to;
};

// Closes the gate unless the sums allow that the step is applied. Sets the
// other members of the state.
struct DecideParameters {
  float* fields;
  double expected_weight;
  // Host memory; may be null. A value other than 0 means that collectives of
  // the step may have failed.
  const int32_t* end_word;
  TrailerState* state;
  DeviceGate* gate;
};

}  // namespace muster::internal

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_CODE_TRAILER_PARAMETERS_H_
