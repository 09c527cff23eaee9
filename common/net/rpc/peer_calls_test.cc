#include "common/net/rpc/peer_calls.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(PeerCallsTest, APeerThatHasTooManyCallsGetsNoMore) {
  PeerCalls calls(2);
  auto first = calls.Begin("worker 0");
  ASSERT_OK(first);
  std::optional<PeerCalls::Call> second = *calls.Begin("worker 0");
  EXPECT_THAT(calls.Begin("worker 0"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("worker 0"), HasSubstr("2 calls"))));
  // Other peers are not affected.
  EXPECT_OK(calls.Begin("worker 1"));
  second.reset();
  EXPECT_OK(calls.Begin("worker 0"));
}

TEST(PeerCallsTest, AMovedCallEndsOnce) {
  PeerCalls calls(1);
  {
    PeerCalls::Call call = *calls.Begin("worker 0");
    const PeerCalls::Call moved = std::move(call);
    EXPECT_FALSE(calls.Begin("worker 0").ok());
  }
  const auto next = calls.Begin("worker 0");
  ASSERT_OK(next);
  EXPECT_FALSE(calls.Begin("worker 0").ok());
}

}  // namespace
}  // namespace muster
