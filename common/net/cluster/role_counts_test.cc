#include "common/net/cluster/role_counts.h"

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RoleCountsTest, KeepTheOrderGiven) {
  ASSERT_OK_AND_ASSIGN(const RoleCounts roles,
                       ParseRoleCounts("ps=2, chief=1,worker=4"));
  EXPECT_THAT(roles, ElementsAre(RoleCount{TaskType::kPs, 2},
                                 RoleCount{TaskType::kChief, 1},
                                 RoleCount{TaskType::kWorker, 4}));
  EXPECT_EQ(TotalCount(roles), 7);
  EXPECT_EQ(ToString(roles), "ps=2,chief=1,worker=4");
}

TEST(RoleCountsTest, RolesWithoutTasksAreLeftOut) {
  ASSERT_OK_AND_ASSIGN(const RoleCounts roles,
                       ParseRoleCounts("ps=0,worker=1"));
  EXPECT_EQ(ToString(roles), "worker=1");
  ASSERT_OK_AND_ASSIGN(const RoleCounts none, ParseRoleCounts(" "));
  EXPECT_THAT(none, IsEmpty());
}

TEST(RoleCountsTest, ErrorsNameTheEntry) {
  const auto refused = [](absl::string_view text, const char* reason) {
    EXPECT_THAT(ParseRoleCounts(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(reason)))
        << text;
  };
  refused("workers=2", "did you mean \"worker\"");
  refused("worker", "\"worker\" has no number of tasks");
  refused("worker=-1", "\"worker=-1\" has no number");
  refused("worker=two", "as in chief=1,ps=2,worker=4");
  refused("worker=2,ps=1,worker=1", "the role worker occurs twice");
  refused("worker=65537", "0 to 65536");
  refused("worker=65536,ps=1", "65537 tasks; expected at most 65536");
  refused("worker=2,", "\"\" is not a role");
}

}  // namespace
}  // namespace muster
