// Multiplies arrays by a number: gradients on their way to other replicas.

#include "common/compute/kernels/cuda/device_functions.h"
#include "common/compute/kernels/cuda/scale_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

template <typename C>
__device__ void Scale(const ScaleParameters& p) {
  const int64_t i = GlobalThread();
  if (i >= p.count) return;
  StoreElement(p.to, i, LoadElement<C>(p.from, i) * static_cast<C>(p.factor));
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void scale_float(
    const __grid_constant__ ScaleParameters p) {
  Scale<float>(p);
}

extern "C" __global__ void scale_double(
    const __grid_constant__ ScaleParameters p) {
  Scale<double>(p);
}

extern "C" __global__ void scale_integer(
    const __grid_constant__ ScaleParameters p) {
  const int64_t i = GlobalThread();
  if (i >= p.count) return;
  StoreElement(p.to, i, LoadElement<int64_t>(p.from, i) / p.divisor);
}

MUSTER_SIMULATED_KERNELS(scale, MUSTER_PLAIN_KERNEL(scale_float),
                         MUSTER_PLAIN_KERNEL(scale_double),
                         MUSTER_PLAIN_KERNEL(scale_integer))
