#include "common/net/process/status_service.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(StartLineTest, NamesTheTaskAndTheVersion) {
  StartInfo info;
  info.config.cluster = *ClusterSpec::FromLists(
      {{TaskType::kWorker, {"localhost:20000", "localhost:20001"}}});
  info.config.task = {TaskType::kWorker, 1};
  info.address = "localhost:20001";
  info.incarnation = 0x6f1c02a9d2e4b713;
  info.seed = 7;
  EXPECT_EQ(StartLine(info),
            "muster 0.1.0  worker 1 of 2  localhost:20001  "
            "incarnation 6f1c02a9d2e4b713  seed 7");
  info.resumes_from = "runs/a/ckpt-3";
  EXPECT_EQ(StartLine(info),
            "muster 0.1.0  worker 1 of 2  localhost:20001  "
            "incarnation 6f1c02a9d2e4b713  seed 7  resumes from runs/a/ckpt-3");
}

TEST(StartLineTest, AProcessAloneHasNoRole) {
  EXPECT_EQ(StartLine({.incarnation = 1}),
            "muster 0.1.0  one process  incarnation 0000000000000001");
}

}  // namespace
}  // namespace muster
