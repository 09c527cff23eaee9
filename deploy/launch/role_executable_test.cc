#include "deploy/launch/role_executable.h"

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;

std::string ExecutableOf(absl::string_view cluster, absl::string_view type) {
  const absl::StatusOr<ClusterConfig> config = ParseTfConfig(
      absl::StrCat(R"({"cluster":)", cluster, R"(,"task":{"type":")", type,
                   R"(","index":0}})"),
      "TF_CONFIG");
  EXPECT_OK(config);
  return config.ok() ? ExecutableOfTask(*config) : "";
}

TEST(RoleExecutableTest, TheRoleDecides) {
  const char kServers[] = R"({"chief":["a:1"],"worker":["b:1"],"ps":["c:1"]})";
  EXPECT_EQ(ExecutableOf(kServers, "chief"), "coordinator");
  EXPECT_EQ(ExecutableOf(kServers, "worker"), "worker");
  EXPECT_EQ(ExecutableOf(kServers, "ps"), "ps");
  EXPECT_EQ(ExecutableOf(kServers, "evaluator"), "coordinator");
  // Without servers the chief is one of the workers.
  EXPECT_EQ(ExecutableOf(R"({"chief":["a:1"],"worker":["b:1"]})", "chief"),
            "worker");
  // A process that runs alone.
  EXPECT_EQ(ExecutableOfTask(ClusterConfig()), "coordinator");
}

TEST(RoleExecutableTest, FlagsOfLaunchAreNotPassedOn) {
  EXPECT_THAT(ArgumentsOfTask({"--bin_dir", "/a", "--job=x", "--task",
                               "--bin_dir=/b", "--set", "a=b"}),
              ElementsAre("--job=x", "--set", "a=b"));
}

TEST(RoleExecutableTest, TheModeIsAskedForBeforeTheArgumentsOfAProgram) {
  EXPECT_TRUE(IsTaskMode({"--job=x", "--task"}));
  EXPECT_FALSE(IsTaskMode({"--job=x", "--", "--task"}));
}

}  // namespace
}  // namespace muster
