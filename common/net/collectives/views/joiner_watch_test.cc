#include "common/net/collectives/views/joiner_watch.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/io/storage/disk.h"
#include "common/net/collectives/views/join_requests.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/group_view.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kInterval = absl::Seconds(1);

class JoinerWatchTest : public testing::Test {
 protected:
  JoinerWatchTest() { EXPECT_OK(Disk::Real()->MakeFolder(folder_)); }

  std::unique_ptr<JoinerWatch> Watch() {
    return std::make_unique<JoinerWatch>(
        JoinerWatch::Options{.interval = kInterval,
                             .answers =
                                 [this] {
                                   absl::MutexLock lock(&mutex_);
                                   ++round_count_;
                                   Renew();
                                   return answers_;
                                 },
                             .may_join =
                                 [this](const GroupView::Member& member) {
                                   return member.task.index != member_index_;
                                 }},
        &requests_, &clock_);
  }

  // Lets the watch look at the requests, and waits until it has.
  void Look() {
    absl::MutexLock lock(&mutex_);
    const int wanted = round_count_ + 2;
    const auto has_looked = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return round_count_ >= wanted;
    };
    // The thread may not wait for the clock yet.
    while (!mutex_.AwaitWithTimeout(absl::Condition(&has_looked),
                                    absl::Milliseconds(1))) {
      mutex_.Unlock();
      clock_.Advance(kInterval / 2);
      mutex_.Lock();
    }
  }

  // Lets the watch look several times, and renews the requests of `members`
  // before each look.
  void LookAndRenew(std::vector<GroupView::Member> members) {
    {
      absl::MutexLock lock(&mutex_);
      renewed_ = std::move(members);
    }
    for (int i = 0; i < 3; ++i) Look();
  }

  void Renew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const GroupView::Member& member : renewed_) {
      EXPECT_OK(requests_.Write(
          {.member = member, .is_ready = true, .beat = ++beat_}));
    }
  }

  static GroupView::Member Worker(int index, uint64_t incarnation) {
    return {.task = {TaskType::kWorker, index},
            .incarnation = incarnation,
            .address = absl::StrCat("localhost:", 1000 + index)};
  }

  uint64_t Pulse() { return requests_.ReadPulse().value(); }

  const std::string folder_ =
      JoinPath(testing::TempDir(),
               testing::UnitTest::GetInstance()->current_test_info()->name());
  const JoinRequests requests_{Disk::Real(), folder_};
  const int member_index_ = 9;
  SimulatedClock clock_;
  absl::Mutex mutex_;
  int round_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool answers_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<GroupView::Member> renewed_ ABSL_GUARDED_BY(mutex_);
  uint64_t beat_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(JoinerWatchTest, AnswersAndFindsWhoIsReady) {
  ASSERT_OK(requests_.Write({.member = Worker(1, 11)}));
  const auto watch = Watch();
  Look();
  const uint64_t pulse = Pulse();
  EXPECT_NE(pulse, 0u);
  EXPECT_FALSE(watch->has_ready());  // It prepares.
  LookAndRenew({Worker(1, 11)});
  EXPECT_GT(Pulse(), pulse);
  EXPECT_TRUE(watch->has_ready());
  EXPECT_THAT(watch->TakeReady(), ElementsAre(Worker(1, 11)));
}

TEST_F(JoinerWatchTest, IgnoresAndRemovesTheRequestOfADeadProcess) {
  ASSERT_OK(
      requests_.Write({.member = Worker(1, 11), .is_ready = true, .beat = 5}));
  const auto watch = Watch();
  for (int i = 0; i < 20; ++i) {
    Look();
    EXPECT_FALSE(watch->has_ready());
  }
  EXPECT_THAT(*requests_.List(), IsEmpty());
}

TEST_F(JoinerWatchTest, IgnoresMembersOfTheGroup) {
  const auto watch = Watch();
  LookAndRenew({Worker(member_index_, 3), Worker(1, 11)});
  EXPECT_THAT(watch->TakeReady(), ElementsAre(Worker(1, 11)));
}

TEST_F(JoinerWatchTest, OnlyTheFirstTaskAnswers) {
  {
    absl::MutexLock lock(&mutex_);
    answers_ = false;
  }
  const auto watch = Watch();
  LookAndRenew({Worker(1, 11)});
  EXPECT_FALSE(watch->has_ready());
  EXPECT_EQ(Pulse(), 0u);
}

TEST_F(JoinerWatchTest, ANewProcessReplacesTheRequestOfItsPredecessor) {
  ASSERT_OK(requests_.Write({.member = Worker(1, 11)}));
  ASSERT_OK(requests_.Write({.member = Worker(2, 12)}));
  ASSERT_OK(requests_.RemoveOthers(Worker(1, 13)));
  ASSERT_OK_AND_ASSIGN(const auto left, requests_.List());
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].member, Worker(2, 12));
}

TEST_F(JoinerWatchTest, TheStartIsWrittenOnce) {
  EXPECT_THAT(requests_.ReadStart(), StatusIs(absl::StatusCode::kNotFound));
  proto::GroupStart start;
  start.add_results("first");
  ASSERT_OK(requests_.WriteStart(start));
  start.add_results("second");
  ASSERT_OK(requests_.WriteStart(start));
  ASSERT_OK_AND_ASSIGN(const proto::GroupStart read, requests_.ReadStart());
  EXPECT_THAT(read.results(), ElementsAre("first"));
}

TEST_F(JoinerWatchTest, ForeignFilesAreNoRequests) {
  ASSERT_OK(ReplaceFile(Disk::Real(), JoinPath(folder_, "join-x"), "what"));
  ASSERT_OK_AND_ASSIGN(const auto requests, requests_.List());
  EXPECT_THAT(requests, IsEmpty());
}

}  // namespace
}  // namespace muster
