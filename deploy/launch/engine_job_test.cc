#include "deploy/launch/engine_job.h"

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EngineJobTest, TheNameIsThatOfTheFile) {
  EXPECT_EQ(EngineJobName("jobs/MNIST_v2.job"), "mnist-v2");
  EXPECT_EQ(EngineJobName("./train"), "train");
  EXPECT_EQ(EngineJobName(std::string(99, 'a')), std::string(40, 'a'));
}

TEST(EngineJobTest, NamesAreDnsLabelsWithRoomForRoleAndIndex) {
  EXPECT_OK(CheckEngineJobName("mnist-2"));
  EXPECT_OK(CheckEngineJobName(std::string(40, 'a')));
  for (const std::string& name :
       {std::string(), std::string("2nd"), std::string("a-"), std::string("-a"),
        std::string("A"), std::string("a_b"), std::string("a.b"),
        std::string(41, 'a')}) {
    EXPECT_THAT(CheckEngineJobName(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("1 to 40 lower-case letters")))
        << name;
  }
}

TEST(EngineJobTest, TasksAreCountedByRole) {
  ClusterPlan plan;
  plan.worker_count = 4;
  plan.ps_count = 2;
  EXPECT_EQ(ClusterTasksOf(plan), "chief=1,ps=2,worker=4");
  plan.ps_count = 0;
  plan.with_chief = false;
  plan.with_evaluator = true;
  EXPECT_EQ(ClusterTasksOf(plan), "worker=4,evaluator=1");
}

TEST(EngineJobTest, EveryTaskGetsTheSameArguments) {
  ClusterPlan plan;
  plan.settings = {{"data_dir", "/data"}};
  EXPECT_THAT(
      EngineTaskArguments(plan, "/jobs/a.job"),
      ElementsAre("--task", "--job=/jobs/a.job", "--set", "data_dir=/data"));
  plan.program = {"/bin/train", "--fast"};
  EXPECT_THAT(EngineTaskArguments(plan, ""), ElementsAre("--fast"));
}

}  // namespace
}  // namespace muster
