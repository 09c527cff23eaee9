#include "common/net/cluster/host_flags.h"

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(HostFlagsTest, AreEquivalentToTfConfig) {
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config,
                       ParseHostFlags({.job_name = "ps",
                                       .task_index = 1,
                                       .worker_hosts = "a:1, b:1",
                                       .ps_hosts = "c:1,d:1"}));
  EXPECT_EQ(config.task, (TaskId{TaskType::kPs, 1}));
  EXPECT_EQ(config.cluster.ToString(),
            R"({"worker":["a:1","b:1"],"ps":["c:1","d:1"]})");
}

TEST(HostFlagsTest, AreUsedIfAnyIsSet) {
  EXPECT_FALSE(HostFlags().any());
  EXPECT_TRUE(HostFlags{.task_index = 0}.any());
  EXPECT_TRUE(HostFlags{.ps_hosts = "a:1"}.any());
}

TEST(HostFlagsTest, ErrorsNameTheFlags) {
  EXPECT_THAT(ParseHostFlags({.worker_hosts = "a:1"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("add --job_name")));
  EXPECT_THAT(ParseHostFlags({.job_name = "worker", .worker_hosts = "a:1"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("add --task_index")));
  EXPECT_THAT(
      ParseHostFlags(
          {.job_name = "worker", .task_index = 0, .worker_hosts = "a:1,,b:1"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("cluster.worker[1]: \"\" has no host")));
}

}  // namespace
}  // namespace muster
