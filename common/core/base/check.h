#ifndef COMMON_CORE_BASE_CHECK_H_
#define COMMON_CORE_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

#include "absl/base/optimization.h"

// For bugs in Muster only: a condition that no input, peer or file can make
// false. Invalid input is reported with a Status. Enabled in release builds.
#define MUSTER_CHECK(condition)                                             \
  do {                                                                      \
    if (ABSL_PREDICT_FALSE(!(condition))) {                                 \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                             \
      std::abort();                                                         \
    }                                                                       \
  } while (false)

#endif  // COMMON_CORE_BASE_CHECK_H_
