#include "coordinator/remote_value.h"

#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(RemoteValueTest, TheFirstOutcomeStays) {
  RemoteValueState state(1);
  state.SetResults({Tensor::Scalar(2.0f)});
  state.SetError(absl::CancelledError("late"));
  EXPECT_TRUE(state.done());
  EXPECT_OK(state.status());
  EXPECT_EQ(state.results()[0].scalar<float>(), 2.0f);
}

TEST(RemoteValueTest, AWaiterWakesWhenTheClosureFinishes) {
  RemoteValueState state(1);
  std::thread worker([&state] { state.SetError(absl::InternalError("x")); });
  EXPECT_TRUE(state.AwaitDone(Clock::Real()->Now() + absl::Seconds(60)));
  worker.join();
  EXPECT_THAT(state.status(), StatusIs(absl::StatusCode::kInternal));
}

TEST(RemoteValueTest, AWaitEndsAtItsDeadline) {
  RemoteValueState state(1);
  EXPECT_FALSE(state.AwaitDone(Clock::Real()->Now()));
}

TEST(RemoteValueTest, AKeptResultIsReleasedOnceWithItsLastReference) {
  int released_count = 0;
  auto state = std::make_shared<RemoteValueState>(1);
  state->SetKept({.keeper = {.worker_index = 3, .worker_incarnation = 7},
                  .release = [&] { ++released_count; }});
  ASSERT_TRUE(state->keeper().has_value());
  EXPECT_EQ(state->keeper()->worker_index, 3);
  EXPECT_EQ(state->keeper()->worker_incarnation, 7u);

  RemoteValue first(state);
  RemoteValue second = first;
  state.reset();
  first = RemoteValue();
  EXPECT_EQ(released_count, 0);
  second = RemoteValue();
  EXPECT_EQ(released_count, 1);
}

TEST(RemoteValueTest, AFetchedResultIsReleasedAtOnceAndStaysReadable) {
  int released_count = 0;
  RemoteValueState state(1);
  state.SetKept({.release = [&] { ++released_count; }});
  state.SetFetched({Tensor::Scalar(5)});
  state.SetFetched({Tensor::Scalar(6)});
  EXPECT_EQ(released_count, 1);
  EXPECT_EQ(state.results()[0].scalar<int>(), 5);
}

}  // namespace
}  // namespace muster
