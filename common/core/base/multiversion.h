#ifndef COMMON_CORE_BASE_MULTIVERSION_H_
#define COMMON_CORE_BASE_MULTIVERSION_H_

#include "absl/base/config.h"

// MUSTER_MULTIVERSION before the definition of a function compiles it once for
// each vector width; the first call selects the widest that the machine has.
// For plain loops over arrays that the compiler vectorizes:
//
//   MUSTER_MULTIVERSION void AddFloats(int64_t count, const float* a,
//                                      float* b);
//
// The function is neither a template nor inline, and its name is unique in the
// program, even in an unnamed namespace: clang exports the resolver. Functions
// that it calls are compiled for the same width only if they are inlined
// (ABSL_ATTRIBUTE_ALWAYS_INLINE).
//
// The wide versions may contract a * b + c, which rounds once instead of twice.
// If results must be bit-identical between machines, compile with
// -ffp-contract=off.
//
// Expands to nothing where the loader cannot select a version (other
// processors), and under sanitizers, whose runtime is not initialized yet when
// the loader selects it.
#if defined(__x86_64__) && defined(__linux__) && \
    !defined(ABSL_HAVE_ADDRESS_SANITIZER) &&     \
    !defined(ABSL_HAVE_MEMORY_SANITIZER) &&      \
    !defined(ABSL_HAVE_THREAD_SANITIZER)
#define MUSTER_MULTIVERSION \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MUSTER_MULTIVERSION
#endif

#endif  // COMMON_CORE_BASE_MULTIVERSION_H_
