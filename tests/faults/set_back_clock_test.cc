// Real processes under a wall clock that is set back by an hour.
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>

#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

constexpr TaskId kChief = ClusterUnderTest::kChief;

TEST(SetBackClockTest, AStoppedServerIsLost) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ClusterUnderTest> cluster,
                       ClusterUnderTest::Create("AStoppedServerIsLost", 2, 2));
  cluster->set_epochs(100000);
  const std::string file = testing::TempDir() + "/clock_is_set_back";
  for (const TaskId& task : cluster->cluster().Members()) {
    ASSERT_OK(
        cluster->Start(task, {},
                       {{"LD_PRELOAD", "tests/faults/libset_back_clock.so"},
                        {"SET_BACK_CLOCK_FILE", file}}));
  }
  ASSERT_OK(cluster->process(kChief).AwaitLine("Epoch 3/"));
  std::ofstream(file).put('1');
  cluster->process({TaskType::kPs, 1}).SendSignal(SIGSTOP);
  EXPECT_THAT(cluster->process(kChief).AwaitLine("is lost"),
              IsOkAndHolds(testing::HasSubstr("ps 1 ")));
}

}  // namespace
}  // namespace muster
