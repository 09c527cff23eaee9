#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_ROW_BLOCKS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_ROW_BLOCKS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/core/device/device_language.h"

// Shared code of kernels whose threads read rows of floating elements in
// vectors. For .cu files only.
namespace muster::internal {

template <typename T>
struct ComputeTypeOfElement {
  using type = float;
};
template <>
struct ComputeTypeOfElement<double> {
  using type = double;
};
// The type in which elements of T are computed.
template <typename T>
using ComputeOf = typename ComputeTypeOfElement<T>::type;

// Adjacent elements, which one instruction loads or stores.
template <typename T, int kVector>
struct alignas(sizeof(T) * kVector) Pack {
  T at[kVector];
};

// Adds the values of the threads in a column of the block, in pairs; the
// threads of row 0 get the sums. `shared` holds kValues numbers for each
// thread.
template <typename C, int kValues>
__device__ void SumColumns(C (&values)[kValues], C* shared) {
  const uint32_t threads = blockDim.x * blockDim.y;
  C* const own = shared + threadIdx.y * blockDim.x + threadIdx.x;
  MUSTER_UNROLL
  for (int i = 0; i < kValues; ++i) own[i * threads] = values[i];
  for (uint32_t lanes = blockDim.y; lanes > 1;) {
    const uint32_t half = (lanes + 1) / 2;
    __syncthreads();
    if (threadIdx.y + half < lanes) {
      MUSTER_UNROLL
      for (int i = 0; i < kValues; ++i) {
        own[i * threads] += own[i * threads + half * blockDim.x];
      }
    }
    lanes = half;
  }
  MUSTER_UNROLL
  for (int i = 0; i < kValues; ++i) values[i] = own[i * threads];
}

// Calls visit.operator()<T, kVector>() for elements of `type`, in kernels that
// compute in float. Vectors have 4 elements or 1.
template <typename Visit>
__device__ void VisitFloat(ElementType type, int vector, const Visit& visit) {
  const bool is_vector = vector == 4;
  switch (type) {
    case ElementType::kBfloat16:
      return is_vector ? visit.template operator()<bfloat16, 4>()
                       : visit.template operator()<bfloat16, 1>();
    case ElementType::kFloat16:
      return is_vector ? visit.template operator()<float16, 4>()
                       : visit.template operator()<float16, 1>();
    default:
      return is_vector ? visit.template operator()<float, 4>()
                       : visit.template operator()<float, 1>();
  }
}

// As VisitFloat(), in kernels that compute in double: 2 elements or 1.
template <typename Visit>
__device__ void VisitDouble(int vector, const Visit& visit) {
  return vector == 2 ? visit.template operator()<double, 2>()
                     : visit.template operator()<double, 1>();
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_ROW_BLOCKS_H_
