#include "common/core/system/testing/await_true.h"

#include <atomic>
#include <thread>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(AwaitTrueTest, ReturnsWhenAnotherThreadMakesItTrue) {
  std::atomic<int> call_count = 0;
  std::atomic<bool> is_true = false;
  std::thread other([&] {
    EXPECT_TRUE(AwaitTrue([&] { return call_count > 3; }));
    is_true = true;
  });
  EXPECT_TRUE(AwaitTrue([&] {
    ++call_count;
    return is_true.load();
  }));
  other.join();
}

TEST(AwaitTrueTest, EndsWithItsTimeout) {
  EXPECT_FALSE(AwaitTrue([] { return false; }, absl::Milliseconds(5)));
}

TEST(AwaitTrueTest, LooksOnceMoreAtTheDeadline) {
  int call_count = 0;
  EXPECT_TRUE(AwaitTrue([&] { return ++call_count == 2; }, -absl::Seconds(1)));
}

}  // namespace
}  // namespace muster
