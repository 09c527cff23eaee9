// Multiplies arrays by a number, for gradients that are sent to other replicas.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/scale_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

// A factor of 1 in place needs no work.
__device__ bool IsDone(const ScaleParameters& p) {
  return p.factor_on_device != nullptr && *p.factor_on_device == 1 &&
         p.from.data == p.to.data;
}

template <typename C>
__device__ void Scale(const ScaleParameters& p) {
  const int64_t i = GlobalThread();
  if (i >= p.count || IsDone(p)) return;
  const double factor =
      p.factor_on_device == nullptr ? p.factor : *p.factor_on_device;
  StoreElement(
      p.to, i,
      factor == 0 ? C(0) : LoadElement<C>(p.from, i) * static_cast<C>(factor));
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void scale_float(
    const __grid_constant__ ScaleParameters p) {
  AwaitPrecedingKernel();
  Scale<float>(p);
}

extern "C" __global__ void scale_double(
    const __grid_constant__ ScaleParameters p) {
  AwaitPrecedingKernel();
  Scale<double>(p);
}

extern "C" __global__ void scale_integer(
    const __grid_constant__ ScaleParameters p) {
  AwaitPrecedingKernel();
  const int64_t i = GlobalThread();
  if (i >= p.count || IsDone(p)) return;
  int64_t divisor = p.divisor;
  if (p.factor_on_device != nullptr) {
    const double factor = *p.factor_on_device;
    divisor =
        factor > 0 && factor < 1 ? static_cast<int64_t>(1 / factor + 0.5) : 1;
  }
  StoreElement(p.to, i, LoadElement<int64_t>(p.from, i) / divisor);
}

MUSTER_SIMULATED_KERNELS(scale, MUSTER_PLAIN_KERNEL(scale_float),
                         MUSTER_PLAIN_KERNEL(scale_double),
                         MUSTER_PLAIN_KERNEL(scale_integer))
