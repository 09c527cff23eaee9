#include "common/net/process/resource_failure.h"

#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "absl/base/config.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

void EndBy(void (*fail)()) noexcept {
  ReportResourceFailures("tester");
  fail();
}

TEST(ResourceFailureTest, AThreadThatCannotBeStartedEndsWithTheLimits) {
  EXPECT_EXIT(
      EndBy([] { throw std::system_error(EAGAIN, std::generic_category()); }),
      testing::ExitedWithCode(1),
      "tester: cannot start a thread: Resource temporarily "
      "unavailable. Address space is .*ulimit -v");
}

TEST(ResourceFailureTest, MissingMemoryEndsWithTheLimits) {
  EXPECT_EXIT(EndBy([] { throw std::bad_alloc(); }), testing::ExitedWithCode(1),
              "tester: out of memory: Cannot allocate memory");
}

TEST(ResourceFailureTest, OtherExceptionsAbort) {
  EXPECT_EXIT(EndBy([] { throw std::runtime_error("a bug"); }),
              testing::KilledBySignal(SIGABRT), "a bug");
}

TEST(ResourceFailureTest, TooFewOpenFilesAreNamedWithTheLimit) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_OK(CheckResourceLimits());
  rlimit limit = before;
  limit.rlim_cur = 20;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_THAT(
      CheckResourceLimits(),
      StatusIs(absl::StatusCode::kResourceExhausted,
               testing::HasSubstr("open files are limited to 20 (ulimit -n); "
                                  "a task needs at least 64")));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(ResourceFailureTest, TooLittleAddressSpaceIsNamedWithTheLimit) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers need address space themselves";
#endif
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 300 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const absl::Status status = CheckResourceLimits();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               testing::HasSubstr(
                                   "Address space is limited to 307200 KiB "
                                   "(ulimit -v); a task needs at least 524288 "
                                   "KiB")));
}

}  // namespace
}  // namespace muster
