// The gate that decides whether the work of a step may change variables.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/gate_parameters.h"
#include "common/core/device/device_language.h"

using namespace muster::internal;  // NOLINT

extern "C" __global__ void begin_step(
    const __grid_constant__ BeginStepParameters p) {
  AwaitPrecedingKernel();
  if (GlobalThread() == 0) p.gate->step = NextStep(p.gate->step);
}

extern "C" __global__ void check_weight(
    const __grid_constant__ CheckWeightParameters p) {
  AwaitPrecedingKernel();
  if (GlobalThread() != 0) return;
  const float weight = *p.weight;
  // False for NaN and infinity, too.
  const bool is_valid = weight >= 0 && weight - weight == 0;
  if (!is_valid) CloseGate(p.gate);
}

MUSTER_SIMULATED_KERNELS(gate, MUSTER_PLAIN_KERNEL(begin_step),
                         MUSTER_PLAIN_KERNEL(check_weight))
