#include "common/net/collectives/views/group_view.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/storage/disk.h"
#include "common/net/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker2 = {TaskType::kWorker, 2};

class ViewClaimsTest : public testing::Test {
 protected:
  const std::string folder_ = JoinPath(
      testing::TempDir(),
      absl::StrCat(
          testing::UnitTest::GetInstance()->current_test_info()->name(),
          "/views"));
  const ViewClaims claims_{Disk::Real(), folder_};

  static GroupView View(uint64_t number, TaskId claimed_by) {
    return {
        .number = number,
        .members =
            {{.task = kWorker0, .incarnation = 7, .address = "localhost:1"},
             {.task = kWorker2, .incarnation = 9, .address = "localhost:3"}},
        .claimed_by = claimed_by};
  }
};

TEST_F(ViewClaimsTest, TheFirstClaimOfANumberIsTheView) {
  ASSERT_OK_AND_ASSIGN(const GroupView first, claims_.Claim(View(1, kWorker0)));
  EXPECT_EQ(first.claimed_by, kWorker0);
  ASSERT_OK_AND_ASSIGN(const GroupView second,
                       claims_.Claim(View(1, kWorker2)));
  EXPECT_EQ(second.claimed_by, kWorker0);
  EXPECT_EQ(second.number, 1u);
  EXPECT_EQ(second.members, View(1, kWorker0).members);
}

TEST_F(ViewClaimsTest, OneOfManyClaimsAtATimeWins) {
  std::vector<std::thread> threads;
  std::vector<TaskId> winners(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto view = claims_.Claim(View(5, {TaskType::kWorker, i}));
      ASSERT_OK(view);
      winners[i] = view->claimed_by;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const TaskId winner : winners) EXPECT_EQ(winner, winners[0]);
}

TEST_F(ViewClaimsTest, FindsTheNewestView) {
  ASSERT_OK_AND_ASSIGN(std::optional<GroupView> newest, claims_.NewestAfter(0));
  EXPECT_FALSE(newest.has_value());
  for (int number = 1; number <= 3; ++number) {
    ASSERT_OK(claims_.Claim(View(number, kWorker0)));
  }
  ASSERT_OK_AND_ASSIGN(newest, claims_.NewestAfter(1));
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->number, 3u);
  ASSERT_OK_AND_ASSIGN(newest, claims_.NewestAfter(3));
  EXPECT_FALSE(newest.has_value());
}

TEST_F(ViewClaimsTest, RefusesAnotherFile) {
  ASSERT_OK(Disk::Real()->MakeFolder(folder_));
  ASSERT_OK(ReplaceFile(Disk::Real(), JoinPath(folder_, "view-1"), "no view"));
  EXPECT_THAT(claims_.NewestAfter(0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("view-1 is not view 1 of a group")));
}

TEST(GroupViewTest, ItsClusterKeepsTheNumbersOfWorkers) {
  const GroupView view = {
      .members = {
          {.task = kWorker2, .incarnation = 9, .address = "localhost:3"}}};
  ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, view.Cluster());
  EXPECT_THAT(cluster.Tasks(TaskType::kWorker), ElementsAre(kWorker2));
  EXPECT_TRUE(view.Has(kWorker2));
  EXPECT_FALSE(view.Has(kWorker0));
}

}  // namespace
}  // namespace muster
