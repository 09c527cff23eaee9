#ifndef COMMON_CORE_BASE_HOST_DEVICE_H_
#define COMMON_CORE_BASE_HOST_DEVICE_H_

// For headers whose functions run on the host and in device kernels. Such
// headers include no standard C++ header, because those make device code slow
// to compile. Integers of fixed size and the functions of <math.h>, overloaded
// for float and double, come from here.

#include <math.h>
#include <stdint.h>

// Marks a function that the host and device kernels call.
#ifdef __CUDACC__
#define MUSTER_HOST_DEVICE __host__ __device__
#else
#define MUSTER_HOST_DEVICE
#endif

namespace muster {

// std::bit_cast, for kernels too.
template <typename To, typename From>
MUSTER_HOST_DEVICE inline To BitCast(const From& from) {
  return __builtin_bit_cast(To, from);
}

}  // namespace muster

#endif  // COMMON_CORE_BASE_HOST_DEVICE_H_
