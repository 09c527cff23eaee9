#include "common/net/cluster/kubernetes_cluster.h"

#include <map>
#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

class KubernetesClusterTest : public testing::Test {
 protected:
  KubernetesClusterTest() {
    options_.roles = {
        {TaskType::kChief, 1}, {TaskType::kPs, 1}, {TaskType::kWorker, 2}};
    options_.host_name = "demo-worker-1";
  }

  absl::StatusOr<ClusterConfig> Resolve() {
    return ResolveKubernetesCluster(options_, [this](const char* name) {
      const auto it = variables_.find(name);
      return it == variables_.end() ? nullptr : it->second.c_str();
    });
  }
  void ExpectRefused(const std::string& reason) {
    EXPECT_THAT(Resolve(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr(reason)));
  }

  KubernetesOptions options_;
  std::map<std::string, std::string> variables_;
};

TEST_F(KubernetesClusterTest, TheHostNameIsNameRoleAndIndex) {
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
  EXPECT_EQ(config.cluster.ToString(),
            R"({"chief":["demo-chief-0.demo:8888"],)"
            R"("worker":["demo-worker-0.demo:8888","demo-worker-1.demo:8888"],)"
            R"("ps":["demo-ps-0.demo:8888"]})");
  EXPECT_EQ(config.task, (TaskId{TaskType::kWorker, 1}));
  EXPECT_EQ(config.source, "Kubernetes: host name demo-worker-1");
}

TEST_F(KubernetesClusterTest, NamesMayHaveDashesDigitsAndADomain) {
  options_.host_name = "my-job-2-ps-0.demo.default.svc.cluster.local";
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
  EXPECT_EQ(config.task, (TaskId{TaskType::kPs, 0}));
  EXPECT_THAT(config.cluster.ToString(),
              HasSubstr("\"my-job-2-worker-1.my-job-2:8888\""));
}

TEST_F(KubernetesClusterTest, ServiceAndPortAreThoseGiven) {
  options_.service = "peers.training.svc";
  options_.port = 2222;
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
  EXPECT_THAT(config.cluster.ToString(),
              HasSubstr("\"demo-ps-0.peers.training.svc:2222\""));
}

TEST_F(KubernetesClusterTest, AnIndexedJobGivesTheIndex) {
  variables_["JOB_COMPLETION_INDEX"] = "1";
  ASSERT_OK(Resolve());
  options_.host_name = "demo-worker";
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
  EXPECT_EQ(config.task, (TaskId{TaskType::kWorker, 1}));
  options_.host_name = "demo-worker-0";
  ExpectRefused(
      "JOB_COMPLETION_INDEX is 1, but the host name is \"demo-worker-0\"; "
      "expected one that ends with -1");
  variables_["JOB_COMPLETION_INDEX"] = "one";
  ExpectRefused("JOB_COMPLETION_INDEX is \"one\"");
}

TEST_F(KubernetesClusterTest, AJobSetNumbersTheJobsOfARole) {
  options_.host_name = "demo-worker-0-1";
  variables_["JOB_COMPLETION_INDEX"] = "1";
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
  EXPECT_EQ(config.task, (TaskId{TaskType::kWorker, 1}));
  EXPECT_EQ(config.cluster.ToString(),
            R"({"chief":["demo-chief-0-0.demo:8888"],)"
            R"("worker":["demo-worker-0-0.demo:8888",)"
            R"("demo-worker-0-1.demo:8888"],)"
            R"("ps":["demo-ps-0-0.demo:8888"]})");
  variables_["JOB_COMPLETION_INDEX"] = "0";
  options_.host_name = "demo-worker-1-0";
  ExpectRefused("\"demo-worker-1-0\"; expected NAME-ROLE-0-INDEX in a JobSet");
}

TEST_F(KubernetesClusterTest, HostNamesWithoutRoleOrIndexAreRefused) {
  for (const char* name :
       {"demo-worker", "worker-0", "-worker-0", "demo-trainer-0", "demo-0",
        "demo-worker-x", "demo-worker-", "demo-worker-99999999999", ""}) {
    options_.host_name = name;
    ExpectRefused("expected NAME-ROLE-INDEX");
  }
}

TEST_F(KubernetesClusterTest, RolesAreRequiredAndIncludeThisTask) {
  options_.host_name = "demo-worker-2";
  ExpectRefused(
      "the host name \"demo-worker-2\" is that of worker 2, but "
      "--cluster_tasks=chief=1,ps=1,worker=2 has 2 tasks of worker");
  options_.host_name = "demo-evaluator-0";
  ExpectRefused("has 0 tasks of evaluator");
  options_.roles.clear();
  ExpectRefused("--cluster_tasks is not set");
}

}  // namespace
}  // namespace muster
