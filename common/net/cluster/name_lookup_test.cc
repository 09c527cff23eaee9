#include "common/net/cluster/name_lookup.h"

#include <atomic>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

class NameLookupTest : public testing::Test {
 protected:
  // Blocks until Release() is called, and returns its answer.
  std::string Resolve() {
    absl::MutexLock lock(&mutex_);
    ++running_count_;
    EXPECT_TRUE(
        mutex_.AwaitWithTimeout(absl::Condition(&may_answer_), kTestWaitMax));
    --running_count_;
    return answer_;
  }
  void Release(const std::string& answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = answer;
    may_answer_ = true;
    EXPECT_TRUE(mutex_.AwaitWithTimeout(
        absl::Condition(
            +[](int* count) { return *count == 0; }, &running_count_),
        kTestWaitMax));
  }
  void AwaitRunning() {
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(
        absl::Condition(
            +[](int* count) { return *count == 1; }, &running_count_),
        kTestWaitMax));
  }
  // Blocks until DescribeProblem() returns a text (if `is_wanted`) or none.
  // Needed because the lookup's thread stores the answer only after Resolve()
  // has returned.
  std::string AwaitTrouble(bool is_wanted) {
    std::string trouble;
    EXPECT_TRUE(AwaitTrue([&] {
      clock_.Advance(absl::Seconds(1));
      trouble = lookup_.DescribeProblem("h1:2222");
      return trouble.empty() != is_wanted &&
             trouble.find("still") == std::string::npos;
    })) << trouble;
    return trouble;
  }

  absl::Mutex mutex_;
  int running_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool may_answer_ ABSL_GUARDED_BY(mutex_) = false;
  std::string answer_ ABSL_GUARDED_BY(mutex_);
  SimulatedClock clock_;
  NameLookup lookup_{[this](const std::string&) { return Resolve(); }, &clock_};
};

TEST_F(NameLookupTest, ASilentResolverIsNamedWithTheTimeItHasTaken) {
  EXPECT_EQ(lookup_.DescribeProblem("h1:2222"), "");
  AwaitRunning();
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(lookup_.DescribeProblem("h1:2222"),
            "the name h1 is still being looked up, after 4 s");
  Release("");
}

TEST_F(NameLookupTest, AnUnknownNameIsLookedUpAgainUntilItIsKnown) {
  EXPECT_EQ(lookup_.DescribeProblem("h1:2222"), "");
  AwaitRunning();
  Release("Name or service not known");
  EXPECT_EQ(AwaitTrouble(true),
            "the name h1 is not known: Name or service not known");
  Release("");
  EXPECT_EQ(AwaitTrouble(false), "");
}

// A clock that stands still and counts how often it is read.
class CountingClock final : public Clock {
 public:
  absl::Time Now() override {
    now_count_.fetch_add(1);
    return absl::UnixEpoch();
  }
  bool AwaitWithDeadline(absl::Mutex*, const absl::Condition&,
                         absl::Time) override {
    ADD_FAILURE() << "a lookup does not wait";
    return false;
  }
  int now_count() const { return now_count_.load(); }

 private:
  std::atomic<int> now_count_{0};
};

TEST(NameLookupThreadTest, DoesNotReadTheClockThatItMayOutlive) {
  CountingClock clock;
  NameLookup lookup([](const std::string&) { return "no such name"; }, &clock);
  int call_count = 0;
  EXPECT_TRUE(AwaitTrue([&] {
    ++call_count;
    return !lookup.DescribeProblem("h1:2222").empty();
  }));
  EXPECT_EQ(clock.now_count(), call_count);
}

TEST_F(NameLookupTest, AnAddressNeedsNoLookup) {
  for (const char* address : {"10.0.0.7:2222", "[fd00::1]:2222", "nonsense"}) {
    EXPECT_EQ(lookup_.DescribeProblem(address), "");
  }
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(running_count_, 0);
}

}  // namespace
}  // namespace muster
