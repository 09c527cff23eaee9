#ifndef COMMON_CORE_BASE_CHECK_H_
#define COMMON_CORE_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

#include "absl/base/optimization.h"

// For mistakes of ours only: a condition that no input, peer or file can make
// false. Everything that comes from outside is answered with a Status.
// Stays on in release builds.
#define MUSTER_CHECK(condition)                                             \
  do {                                                                      \
    if (ABSL_PREDICT_FALSE(!(condition))) {                                 \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                             \
      std::abort();                                                         \
    }                                                                       \
  } while (false)

#endif  // COMMON_CORE_BASE_CHECK_H_
