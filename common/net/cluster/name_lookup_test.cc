#include "common/net/cluster/name_lookup.h"

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
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

TEST_F(NameLookupTest, AnAddressNeedsNoLookup) {
  for (const char* address : {"10.0.0.7:2222", "[fd00::1]:2222", "nonsense"}) {
    EXPECT_EQ(lookup_.DescribeProblem(address), "");
  }
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(running_count_, 0);
}

}  // namespace
}  // namespace muster
