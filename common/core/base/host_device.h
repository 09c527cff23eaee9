#ifndef COMMON_CORE_BASE_HOST_DEVICE_H_
#define COMMON_CORE_BASE_HOST_DEVICE_H_

// For headers whose functions run on the host and in device kernels. Such
// headers include no standard C++ header: NVRTC has none. Integers of fixed
// size and the functions of <math.h>, overloaded for float and double, come
// from here.

#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
#else
#include <math.h>
#include <stdint.h>
#endif

// Marks a function that the host and device kernels call.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
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
