#ifndef COMMON_CORE_BASE_STATUS_MACROS_H_
#define COMMON_CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expression` is not OK.
#define RETURN_IF_ERROR(expression)                \
  do {                                             \
    if (absl::Status muster_status = (expression); \
        ABSL_PREDICT_FALSE(!muster_status.ok())) { \
      return muster_status;                        \
    }                                              \
  } while (false)

// Assigns the value of a StatusOr to `target`, which may declare a variable, or
// returns its status from the enclosing function.
#define ASSIGN_OR_RETURN(target, expression) \
  MUSTER_ASSIGN_OR_RETURN_IMPL(              \
      MUSTER_STATUS_CONCAT(muster_status_or_, __LINE__), target, expression)

#define MUSTER_ASSIGN_OR_RETURN_IMPL(status_or, target, expression) \
  auto status_or = (expression);                                    \
  if (ABSL_PREDICT_FALSE(!status_or.ok())) {                        \
    return std::move(status_or).status();                           \
  }                                                                 \
  target = *std::move(status_or)

#define MUSTER_STATUS_CONCAT(a, b) MUSTER_STATUS_CONCAT_INNER(a, b)
#define MUSTER_STATUS_CONCAT_INNER(a, b) a##b

#endif  // COMMON_CORE_BASE_STATUS_MACROS_H_
