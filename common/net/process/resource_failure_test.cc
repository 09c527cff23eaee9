#include "common/net/process/resource_failure.h"

#include <signal.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

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

}  // namespace
}  // namespace muster
