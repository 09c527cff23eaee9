#include "common/net/cluster/cluster_resolver.h"

#include <map>
#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr char kTfConfig[] = R"({"cluster":{"worker":["a:1","b:2"]},)"
                             R"("task":{"type":"worker","index":1}})";

class ClusterResolverTest : public testing::Test {
 protected:
  // Returns where the cluster came from, or the error.
  std::string Source() {
    const absl::StatusOr<ClusterConfig> config =
        ResolveCluster(sources_, [this](const char* name) {
          const auto it = variables_.find(name);
          return it == variables_.end() ? nullptr : it->second.c_str();
        });
    return config.ok() ? config->source
                       : std::string(config.status().message());
  }

  void EnterSlurmStep() {
    variables_.insert({{"SLURM_STEP_NODELIST", "node[0-1]"},
                       {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                       {"SLURM_STEP_NUM_TASKS", "2"},
                       {"SLURM_PROCID", "0"}});
  }
  void EnterPod() {
    variables_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
    sources_.host_name = "demo-worker-0";
  }

  ClusterSources sources_;
  std::map<std::string, std::string> variables_;
};

TEST_F(ClusterResolverTest, WithoutAnythingTheProcessRunsAlone) {
  EXPECT_EQ(Source(), "");
  // A pod without --cluster_tasks may run any other program.
  EnterPod();
  EXPECT_EQ(Source(), "");
}

TEST_F(ClusterResolverTest, AutoPrefersTfConfigThenSlurmThenKubernetes) {
  EnterPod();
  sources_.cluster_tasks = "worker=2";
  EXPECT_EQ(Source(), "Kubernetes: host name demo-worker-0");
  EnterSlurmStep();
  EXPECT_THAT(Source(), HasSubstr("SLURM_STEP_NODELIST"));
  variables_["TF_CONFIG"] = kTfConfig;
  EXPECT_EQ(Source(), "TF_CONFIG");
  sources_.tf_config = kTfConfig;
  EXPECT_EQ(Source(), "--tf_config");
  sources_.hosts = {
      .job_name = "worker", .task_index = 0, .worker_hosts = "a:1,b:1"};
  EXPECT_THAT(Source(), HasSubstr("--job_name"));
}

TEST_F(ClusterResolverTest, ABlankTfConfigMeansAloneWithinASlurmStep) {
  EnterSlurmStep();
  variables_["TF_CONFIG"] = "";
  EXPECT_EQ(Source(), "");
}

TEST_F(ClusterResolverTest, ANamedResolverIsUsed) {
  variables_["TF_CONFIG"] = kTfConfig;
  EnterSlurmStep();
  sources_.resolver = "slurm";
  EXPECT_THAT(Source(), HasSubstr("SLURM_STEP_NODELIST"));
  sources_.resolver = "kubernetes";
  sources_.host_name = "demo-worker-0";
  sources_.cluster_tasks = "worker=2";
  EXPECT_EQ(Source(), "Kubernetes: host name demo-worker-0");
  sources_.resolver = "tf_config";
  EXPECT_EQ(Source(), "TF_CONFIG");
}

TEST_F(ClusterResolverTest, ErrorsNameTheFlag) {
  sources_.cluster_tasks = "worker=2";
  EXPECT_THAT(Source(), HasSubstr("in neither a Slurm step nor a pod"));
  sources_.resolver = "slrum";
  EXPECT_THAT(Source(), HasSubstr("did you mean \"slurm\""));
  sources_.resolver = "nomad";
  EXPECT_THAT(Source(), HasSubstr("expected auto, tf_config, slurm or"));
  sources_.resolver = "slurm";
  EXPECT_THAT(Source(), HasSubstr("SLURM_STEP_NODELIST is not set; start"));
  sources_.port_base = -1;
  EXPECT_THAT(Source(), HasSubstr("--port_base=-1; expected 1 to 65535"));
  sources_.cluster_tasks = "worker";
  EXPECT_THAT(Source(), HasSubstr("--cluster_tasks: \"worker\" has no number"));
}

}  // namespace
}  // namespace muster
