#include "common/net/collectives/views/joiner_watch.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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

constexpr absl::Duration kPatience = absl::Seconds(60);

class JoinerWatchTest : public testing::Test {
 protected:
  JoinerWatchTest() { EXPECT_OK(Disk::Real()->MakeFolder(folder_)); }

  std::unique_ptr<JoinerWatch> Watch() {
    return std::make_unique<JoinerWatch>(
        JoinerWatch::Options{.interval = absl::Milliseconds(100),
                             .answers = [] { return true; },
                             .may_join =
                                 [this](const GroupView::Member& member) {
                                   return member.task.index != member_index_;
                                 }},
        &requests_, Clock::Real());
  }

  static GroupView::Member Worker(int index, uint64_t incarnation) {
    return {.task = {TaskType::kWorker, index},
            .incarnation = incarnation,
            .address = absl::StrCat("localhost:", 1000 + index)};
  }

  // Renews the requests until `condition` holds.
  bool RenewUntil(const std::vector<GroupView::Member>& members,
                  const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (absl::Now() < deadline) {
      for (const GroupView::Member& member : members) {
        EXPECT_OK(requests_.Write(
            {.member = member, .is_ready = true, .beat = ++beat_}));
      }
      if (condition()) return true;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return false;
  }

  uint64_t Pulse() { return requests_.ReadPulse().value(); }

  const std::string folder_ =
      JoinPath(testing::TempDir(),
               testing::UnitTest::GetInstance()->current_test_info()->name());
  const JoinRequests requests_{Disk::Real(), folder_};
  const int member_index_ = 9;
  uint64_t beat_ = 0;
};

TEST_F(JoinerWatchTest, AnswersAndFindsWhoIsReady) {
  ASSERT_OK(requests_.Write({.member = Worker(1, 11)}));
  const auto watch = Watch();
  EXPECT_TRUE(RenewUntil({}, [this] { return Pulse() != 0; }));
  EXPECT_FALSE(watch->has_ready());  // It prepares.
  EXPECT_TRUE(RenewUntil({Worker(1, 11)}, [&] { return watch->has_ready(); }));
  EXPECT_THAT(watch->TakeReady(), ElementsAre(Worker(1, 11)));
  EXPECT_FALSE(watch->has_ready());
}

TEST_F(JoinerWatchTest, IgnoresAndRemovesTheRequestOfADeadProcess) {
  ASSERT_OK(
      requests_.Write({.member = Worker(1, 11), .is_ready = true, .beat = 5}));
  const auto watch = Watch();
  EXPECT_TRUE(RenewUntil({}, [&] {
    EXPECT_FALSE(watch->has_ready());
    return requests_.List()->empty();
  }));
}

TEST_F(JoinerWatchTest, IgnoresMembersOfTheGroup) {
  const auto watch = Watch();
  const std::vector<GroupView::Member> both = {Worker(member_index_, 3),
                                               Worker(1, 11)};
  EXPECT_TRUE(RenewUntil(both, [&] { return watch->has_ready(); }));
  EXPECT_THAT(watch->TakeReady(), ElementsAre(Worker(1, 11)));
}

TEST_F(JoinerWatchTest, OnlyOneTaskAnswers) {
  std::atomic<int> asked{0};
  JoinerWatch other({.interval = absl::Milliseconds(10),
                     .answers =
                         [&] {
                           ++asked;
                           return false;
                         },
                     .may_join = [](const GroupView::Member&) { return true; }},
                    &requests_, Clock::Real());
  EXPECT_TRUE(RenewUntil({Worker(1, 11)}, [&] { return asked > 5; }));
  EXPECT_FALSE(other.has_ready());
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
