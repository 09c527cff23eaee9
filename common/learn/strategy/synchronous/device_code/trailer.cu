// The end of a step of synchronous replicas: writes each replica's trailer, and
// decides from the sums whether the step is applied.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/core/device/device_language.h"
#include "common/learn/strategy/synchronous/device_code/trailer_parameters.h"

using namespace muster::internal;  // NOLINT

extern "C" __global__ void weigh(const __grid_constant__ WeighParameters p) {
  AwaitPrecedingKernel();
  if (GlobalThread() != 0) return;
  p.state->weight = *p.weight;
  p.state->contribution = static_cast<double>(*p.weight) / p.expected_weight;
}

extern "C" __global__ void write_trailer(
    const __grid_constant__ WriteTrailerParameters p) {
  AwaitPrecedingKernel();
  if (GlobalThread() != 0) return;
  for (int32_t i = 0; i < kTrailerFieldCount; ++i) p.to[i] = p.fields[i];
  if (p.is_weighed != 0) p.to[kWeight] = p.state->weight;
  p.to[kInvalidData] = p.gate->is_closed != 0 ? 1.0f : 0.0f;
}

extern "C" __global__ void decide(const __grid_constant__ DecideParameters p) {
  AwaitPrecedingKernel();
  if (GlobalThread() != 0) return;
  const float leaves = p.fields[kLeavesWithData];
  const float weight = p.fields[kWeight];
  p.state->gradient = p.fields[kWeightedLeaves] > 0 && weight > 0
                          ? p.expected_weight / static_cast<double>(weight)
                          : 1.0;
  p.state->mean = leaves > 0 ? 1.0 / static_cast<double>(leaves) : 1.0;
  // volatile, because the host writes the word while the device runs.
  const bool has_ended = p.end_word != nullptr &&
                         *static_cast<const volatile int32_t*>(p.end_word) != 0;
  const bool is_applied = leaves > 0 && p.fields[kStopRequests] == 0 &&
                          p.fields[kInvalidData] == 0 && !has_ended &&
                          p.gate->is_closed == 0;
  if (!is_applied) p.gate->is_closed = 1;
  p.fields[kIsApplied] = is_applied ? 1.0f : 0.0f;
}

MUSTER_SIMULATED_KERNELS(trailer, MUSTER_PLAIN_KERNEL(weigh),
                         MUSTER_PLAIN_KERNEL(write_trailer),
                         MUSTER_PLAIN_KERNEL(decide))
