#ifndef COMMON_COMPUTE_KERNELS_VECTORIZED_H_
#define COMMON_COMPUTE_KERNELS_VECTORIZED_H_

#include "absl/base/attributes.h"

// Compiles loops for the vector widths of several processors and selects one at
// run time. Supports templates, unlike MUSTER_MULTIVERSION
// (common/core/base/multiversion.h), which does the same for functions.
//
// A body is a type with a static Run() marked MUSTER_INLINE. Everything that
// its loop calls must be inlined as well; otherwise it uses the baseline width.
//
//   template <typename F>
//   struct Map {
//     MUSTER_INLINE static void Run(F f, int64_t count, const float* in,
//                                   float* out) {
//       MUSTER_INDEPENDENT_ITERATIONS
//       for (int64_t i = 0; i < count; ++i) out[i] = f(in[i]);
//     }
//   };
//   RunVectorized<Map<F>>(f, count, in, out);
#define MUSTER_INLINE ABSL_ATTRIBUTE_ALWAYS_INLINE inline

// Under sanitizers a loop is compiled once without vectorization: their
// instrumentation prevents vectorization, and several versions would multiply
// the compile time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MUSTER_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
#define MUSTER_IS_SANITIZED 1
#endif
#endif

#if defined(__x86_64__) && !defined(MUSTER_IS_SANITIZED)
#define MUSTER_HAS_VECTOR_WIDTHS 1
#endif

// Precedes a loop whose iterations access no common memory. Without it,
// compilers check whether arrays overlap and do not vectorize kernels that work
// in place. clang warns if it cannot vectorize the loop.
#if defined(MUSTER_IS_SANITIZED)
#define MUSTER_INDEPENDENT_ITERATIONS
#elif defined(__clang__)
#define MUSTER_INDEPENDENT_ITERATIONS \
  _Pragma("clang loop vectorize(assume_safety)")
#else
#define MUSTER_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace muster {
namespace internal {

enum class VectorWidth { kBaseline, kAvx2, kAvx512 };

#if defined(MUSTER_HAS_VECTOR_WIDTHS)

inline VectorWidth FindVectorWidth() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return VectorWidth::kAvx512;
  }
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
             ? VectorWidth::kAvx2
             : VectorWidth::kBaseline;
}

template <typename Body, typename... Arguments>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))) void
RunAvx512(Arguments... arguments) {
  Body::Run(arguments...);
}

template <typename Body, typename... Arguments>
__attribute__((target("avx2,fma"))) void RunAvx2(Arguments... arguments) {
  Body::Run(arguments...);
}

#endif

// The width that RunVectorized() uses. Tests may reduce it.
inline VectorWidth& VectorWidthInUse() {
#if defined(MUSTER_HAS_VECTOR_WIDTHS)
  static VectorWidth width = FindVectorWidth();
#else
  static VectorWidth width = VectorWidth::kBaseline;
#endif
  return width;
}

}  // namespace internal

template <typename Body, typename... Arguments>
void RunVectorized(Arguments... arguments) {
#if defined(MUSTER_HAS_VECTOR_WIDTHS)
  switch (internal::VectorWidthInUse()) {
    case internal::VectorWidth::kAvx512:
      return internal::RunAvx512<Body>(arguments...);
    case internal::VectorWidth::kAvx2:
      return internal::RunAvx2<Body>(arguments...);
    case internal::VectorWidth::kBaseline:
      break;
  }
#endif
  Body::Run(arguments...);
}

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_VECTORIZED_H_
