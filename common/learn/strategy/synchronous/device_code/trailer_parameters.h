#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_CODE_TRAILER_PARAMETERS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_CODE_TRAILER_PARAMETERS_H_

#include <cstdint>

#include "common/compute/kernels/cuda/device_code/device_elements.h"

// The values that replicas exchange at the end of a step, and the parameters of
// the kernels of trailer.cu, which are of one thread. Addresses are the
// device's.
namespace muster::internal {

// The fields of a trailer, all float32, which are summed over all leaves.
enum TrailerField : int32_t {
  kLeavesWithData,
  kWeightedLeaves,
  kWeight,
  kWantToStop,
  kWantToStopAfter,
  // Replicas that let a step begin before the one before it is done.
  kLetStepsOverlap,
  kInvalidData,  // Leaves whose device found an error in their data.
  kTrailerSumCount,
  // Not a sum: 1 if the device applied the step. Written by decide.
  kIsApplied = kTrailerSumCount,
  kTrailerFieldCount,
};

// The state of a replica on a device between its kernels.
struct TrailerState {
  float weight;
  double contribution;  // weight / expected_weight.
  double gradient;      // From the combined gradients to their mean.
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
  int32_t is_weighed;  // 1: kWeight is the weight of the state.
  const TrailerState* state;
  const DeviceGate* gate;  // Gives kInvalidData.
  float* to;
};

// Closes the gate unless the sums say that the step is applied, and sets the
// other members of the state.
struct DecideParameters {
  float* fields;
  double expected_weight;
  // Not 0: the collectives of the step may have failed. Of the host; may be
  // null.
  const int32_t* end_word;
  TrailerState* state;
  DeviceGate* gate;
};

}  // namespace muster::internal

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_CODE_TRAILER_PARAMETERS_H_
