#include "common/net/cluster/task_id.h"

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(TaskIdTest, PrintsRoleAndNumber) {
  EXPECT_EQ((TaskId{TaskType::kWorker, 1}).ToString(), "worker 1");
  EXPECT_EQ((TaskId{TaskType::kPs, 0}).ToString(), "ps 0");
  EXPECT_EQ((TaskId{TaskType::kChief, 0}).ToString(), "chief");
  EXPECT_EQ((TaskId{TaskType::kEvaluator, 0}).ToString(), "evaluator");
}

TEST(TaskIdTest, ParsesEveryRole) {
  for (TaskType type : kTaskTypes) {
    EXPECT_THAT(ParseTaskType(TaskTypeName(type)), IsOkAndHolds(type));
  }
}

TEST(TaskIdTest, ParsesMasterAsChief) {
  EXPECT_THAT(ParseTaskType("master"), IsOkAndHolds(TaskType::kChief));
}

TEST(TaskIdTest, UnknownRoleErrorSuggestsTheNearestOrListsAll) {
  EXPECT_THAT(ParseTaskType("Worker"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean \"worker\"?")));
  EXPECT_THAT(ParseTaskType("tpu"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("chief, worker, ps and evaluator")));
}

}  // namespace
}  // namespace muster
