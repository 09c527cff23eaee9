#ifndef COMMON_CORE_BASE_TESTING_STATUS_MATCHERS_H_
#define COMMON_CORE_BASE_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <ranges>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// GoogleTest matchers for absl::Status and absl::StatusOr:
//   EXPECT_OK(status);  ASSERT_OK_AND_ASSIGN(int x, StatusOrInt());
//   EXPECT_THAT(s, StatusIs(absl::StatusCode::kNotFound, HasSubstr("w")));
// There is no "is not OK" matcher: name the code you expect.

namespace absl {

// Prints the status of a StatusOr, or its value if that is printable. Without
// this function, GoogleTest prints the bytes of the object.
template <typename T>
void PrintTo(const StatusOr<T>& status_or, std::ostream* stream) {
  if (!status_or.ok()) {
    *stream << status_or.status();
  } else if constexpr (std::ranges::range<const T> ||
                       requires { *stream << *status_or; }) {
    *stream << testing::PrintToString(*status_or);
  } else {
    *stream << "OK";
  }
}

}  // namespace absl

namespace muster {
namespace internal {

inline const absl::Status& GetStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

}  // namespace internal

MATCHER(IsOk, "is OK") {
  *result_listener << internal::GetStatus(arg).ToString();
  return arg.ok();
}

MATCHER_P(StatusIs, code, "has status code " + absl::StatusCodeToString(code)) {
  *result_listener << internal::GetStatus(arg).ToString();
  return internal::GetStatus(arg).code() == code;
}

MATCHER_P2(StatusIs, code, message, "has a status code and message") {
  const absl::Status& status = internal::GetStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code &&
         testing::ExplainMatchResult(message, std::string(status.message()),
                                     result_listener);
}

MATCHER_P(IsOkAndHolds, value, "is OK and holds a value") {
  if (!arg.ok()) {
    *result_listener << arg.status().ToString();
    return false;
  }
  return testing::ExplainMatchResult(value, *arg, result_listener);
}

}  // namespace muster

#define EXPECT_OK(expression) EXPECT_THAT(expression, ::muster::IsOk())
#define ASSERT_OK(expression) ASSERT_THAT(expression, ::muster::IsOk())
#define ASSERT_OK_AND_ASSIGN(target, expression) \
  ASSERT_OK_AND_ASSIGN_IMPL(                     \
      MUSTER_MATCHER_CONCAT(muster_status_or_, __LINE__), target, expression)
#define ASSERT_OK_AND_ASSIGN_IMPL(status_or, target, expression) \
  auto status_or = (expression);                                 \
  ASSERT_THAT(status_or, ::muster::IsOk());                      \
  target = *std::move(status_or)
#define MUSTER_MATCHER_CONCAT(a, b) MUSTER_MATCHER_CONCAT_INNER(a, b)
#define MUSTER_MATCHER_CONCAT_INNER(a, b) a##b

#endif  // COMMON_CORE_BASE_TESTING_STATUS_MATCHERS_H_
