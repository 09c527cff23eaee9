#include "common/net/cluster/slurm_cluster.h"

#include <map>
#include <set>
#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::Contains;
using testing::HasSubstr;

class SlurmClusterTest : public testing::Test {
 protected:
  absl::StatusOr<ClusterConfig> Resolve(const std::string& roles = "") {
    const absl::StatusOr<RoleCounts> counts = ParseRoleCounts(roles);
    EXPECT_OK(counts);
    return ResolveSlurmCluster(*counts, port_base_, [this](const char* name) {
      const auto it = variables_.find(name);
      return it == variables_.end() ? nullptr : it->second.c_str();
    });
  }
  void ExpectRefused(const std::string& roles, const std::string& reason) {
    EXPECT_THAT(Resolve(roles), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr(reason)));
  }

  // The variables that srun -N4 -n5 sets for the task of rank 2.
  std::map<std::string, std::string> variables_ = {
      {"SLURM_STEP_NODELIST", "node[0-3]"},
      {"SLURM_STEP_TASKS_PER_NODE", "2,1(x3)"},
      {"SLURM_STEP_NUM_TASKS", "5"},
      {"SLURM_PROCID", "2"},
      {"SLURM_NODEID", "1"},
      {"SLURM_LOCALID", "0"}};
  int port_base_ = 8888;
};

TEST_F(SlurmClusterTest, WithoutRolesEveryRankIsAWorker) {
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
  EXPECT_EQ(config.cluster.ToString(),
            R"({"worker":["node0:8888","node0:8889","node1:8888",)"
            R"("node2:8888","node3:8888"]})");
  EXPECT_EQ(config.task, (TaskId{TaskType::kWorker, 2}));
  EXPECT_THAT(config.source, HasSubstr("SLURM_STEP_NODELIST"));
}

TEST_F(SlurmClusterTest, RanksTakeRolesInTheOrderGiven) {
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config,
                       Resolve("chief=1,ps=2,worker=2"));
  EXPECT_EQ(config.cluster.ToString(),
            R"({"chief":["node0:8888"],"worker":["node2:8888","node3:8888"],)"
            R"("ps":["node0:8889","node1:8888"]})");
  EXPECT_EQ(config.task, (TaskId{TaskType::kPs, 1}));
  ASSERT_OK_AND_ASSIGN(const ClusterConfig other,
                       Resolve("worker=2,ps=2,chief=1"));
  EXPECT_EQ(other.task, (TaskId{TaskType::kPs, 0}));
}

TEST_F(SlurmClusterTest, PortsCountFromTheBaseOnEachNode) {
  port_base_ = 2222;
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
  EXPECT_THAT(config.cluster.ToString(), HasSubstr("\"node0:2223\""));
  port_base_ = 65535;
  ExpectRefused("", "--port_base=65535 leaves no port for task 1 of node0");
}

TEST_F(SlurmClusterTest, WithoutABaseJobsAndStepsHavePortsOfTheirOwn) {
  port_base_ = 0;
  std::set<std::string> clusters;
  for (const char* job : {"100", "101", "102"}) {
    for (const char* step : {"0", "1"}) {
      variables_["SLURM_JOB_ID"] = job;
      variables_["SLURM_STEP_ID"] = step;
      ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
      clusters.insert(config.cluster.ToString());
    }
  }
  EXPECT_EQ(clusters.size(), 6);
  // 100 * 31 modulo 99 is 31.
  EXPECT_THAT(clusters, Contains(HasSubstr("\"node0:23968\",\"node0:23969\"")));
}

TEST_F(SlurmClusterTest, ReservedPortsAreTaken) {
  port_base_ = 0;
  variables_["SLURM_JOB_ID"] = "100";
  variables_["SLURM_STEP_RESV_PORTS"] = "12000-12001";
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
  EXPECT_THAT(config.cluster.ToString(),
              HasSubstr("\"node0:12000\",\"node0:12001\",\"node1:12000\""));
  variables_["SLURM_STEP_RESV_PORTS"] = "12000";
  ExpectRefused("",
                "SLURM_STEP_RESV_PORTS is \"12000\", but a host has 2 tasks");
  for (const char* ports :
       {"12000-", "x", "12001-12000", "12000,12002", "65535-65536"}) {
    variables_["SLURM_STEP_RESV_PORTS"] = ports;
    ExpectRefused("", "expected one range of ports, as in 12000-12003");
  }
  port_base_ = 8888;
  EXPECT_OK(Resolve());
}

TEST_F(SlurmClusterTest, ASingleRankRunsAlone) {
  variables_ = {{"SLURM_STEP_NODELIST", "node3"},
                {"SLURM_STEP_TASKS_PER_NODE", "1"},
                {"SLURM_STEP_NUM_TASKS", "1"},
                {"SLURM_PROCID", "0"}};
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Resolve());
  EXPECT_TRUE(config.cluster.empty());
  EXPECT_TRUE(config.IsAlone());
}

TEST_F(SlurmClusterTest, ErrorsNameTheVariableItsValueAndWhatWasExpected) {
  const auto refused = [this](const std::string& name, const char* value,
                              const std::string& reason) {
    const std::string before = variables_[name];
    variables_[name] = value;
    ExpectRefused("", reason);
    variables_[name] = before;
  };
  refused("SLURM_STEP_NODELIST", "", "SLURM_STEP_NODELIST is not set");
  refused("SLURM_STEP_NODELIST", "node[0-",
          "SLURM_STEP_NODELIST: \"node[0-\" has a \"[\"");
  refused("SLURM_STEP_NODELIST", "node[0-2]",
          "which is 4 nodes, but SLURM_STEP_NODELIST has 3");
  for (const char* counts : {"2,x", "2(x0)", "0(x4)", "2(x", "2x2", "-1",
                             "2(x4", "2(x4)1", "2,,1", "1(x70000)"}) {
    refused("SLURM_STEP_TASKS_PER_NODE", counts, "as in 2(x3),1");
  }
  refused("SLURM_STEP_TASKS_PER_NODE", "65536(x4)",
          "expected at most 65536 tasks");
  refused("SLURM_STEP_NUM_TASKS", "6",
          "SLURM_STEP_NUM_TASKS is 6, but SLURM_STEP_TASKS_PER_NODE "
          "\"2,1(x3)\" adds up to 5");
  refused("SLURM_STEP_NUM_TASKS", "many",
          "SLURM_STEP_NUM_TASKS is \"many\"; expected a number");
  refused("SLURM_PROCID", "5",
          "SLURM_PROCID is 5, but SLURM_STEP_NUM_TASKS is 5");
  refused("SLURM_PROCID", "-1", "SLURM_PROCID is \"-1\"; expected a number");
}

TEST_F(SlurmClusterTest, RolesMustHaveAsManyTasksAsTheStep) {
  ExpectRefused("chief=1,worker=2",
                "SLURM_STEP_NUM_TASKS is 5, but "
                "--cluster_tasks=chief=1,worker=2 has 3 tasks; start as many "
                "with srun --ntasks=3");
}

TEST_F(SlurmClusterTest, AnotherDistributionThanBlockIsRefused) {
  // Cyclic: rank 1 is on the second node.
  variables_["SLURM_PROCID"] = "1";
  ExpectRefused("",
                "SLURM_NODEID is 1 for SLURM_PROCID=1; expected 0 because "
                "tasks fill one node after the other. Start them with srun "
                "--distribution=block");
  variables_["SLURM_NODEID"] = "0";
  ExpectRefused("", "SLURM_LOCALID is 0 for SLURM_PROCID=1; expected 1");
}

TEST_F(SlurmClusterTest, OnlyTasksOfSrunAreInAStep) {
  const auto in_step = [this] {
    return IsInSlurmStep([this](const char* name) {
      const auto it = variables_.find(name);
      return it == variables_.end() ? nullptr : it->second.c_str();
    });
  };
  EXPECT_TRUE(in_step());
  // A batch script has no SLURM_STEP_NUM_TASKS.
  variables_.erase("SLURM_STEP_NUM_TASKS");
  EXPECT_FALSE(in_step());
}

}  // namespace
}  // namespace muster
