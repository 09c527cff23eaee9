#include "common/net/process/task_options.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/log.h"
#include "common/core/system/log_format.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/program_info.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

constexpr char kTfConfig[] = R"({"cluster":{"worker":["a:1","b:2"]},)"
                             R"("task":{"type":"worker","index":1}})";

class TaskOptionsTest : public testing::Test {
 protected:
  TaskOptionsTest() { unsetenv("TF_CONFIG"); }
  ~TaskOptionsTest() override { unsetenv("TF_CONFIG"); }

  absl::StatusOr<TaskOptions> Resolve(std::vector<std::string> arguments) {
    const ProgramInfo program = {.name = "tester",
                                 .summary = "",
                                 .usage = "",
                                 .examples = "",
                                 .topics = TaskFlags(FlagUsers::kAny),
                                 .settings = std::nullopt};
    ASSIGN_OR_RETURN(const CommandLine line,
                     ParseArguments(program, arguments));
    return ResolveTaskOptions(line);
  }

  std::string ListenAddress(const std::string& tf_config,
                            std::vector<std::string> arguments = {}) {
    arguments.push_back("--tf_config=" + tf_config);
    const absl::StatusOr<TaskOptions> options = Resolve(arguments);
    EXPECT_OK(options);
    return options.ok() ? options->listen_address : "";
  }

  absl::FlagSaver saver_;
};

TEST_F(TaskOptionsTest, WithoutFlagsOneProcessRunsAlone) {
  ASSERT_OK_AND_ASSIGN(const TaskOptions options, Resolve({}));
  EXPECT_TRUE(options.config.IsAlone());
  EXPECT_EQ(options.listen_address, "");
  EXPECT_GE(options.thread_count, 1);
  EXPECT_EQ(options.seed, std::nullopt);
  EXPECT_EQ(options.on_coordinator_loss, OnCoordinatorLoss::kExit);
}

TEST_F(TaskOptionsTest, FlagsGoBeforeTheEnvironment) {
  setenv("TF_CONFIG", kTfConfig, 1);
  ASSERT_OK_AND_ASSIGN(TaskOptions options, Resolve({}));
  EXPECT_EQ(options.config.task, (TaskId{TaskType::kWorker, 1}));
  ASSERT_OK_AND_ASSIGN(
      options, Resolve({"--job_name=ps", "--task_index=0", "--ps_hosts=p:1",
                        "--worker_hosts=w:1"}));
  EXPECT_EQ(options.config.task, (TaskId{TaskType::kPs, 0}));
}

TEST_F(TaskOptionsTest, ListensOnEveryInterfaceUnlessTheClusterIsLocal) {
  EXPECT_EQ(ListenAddress(kTfConfig), "[::]:2");
  EXPECT_EQ(ListenAddress(R"({"cluster":{"ps":["localhost:7"],)"
                          R"("worker":["localhost:8"]},)"
                          R"("task":{"type":"ps","index":0}})"),
            "localhost:7");
  EXPECT_EQ(ListenAddress(kTfConfig, {"--bind_address=10.0.0.1:3"}),
            "10.0.0.1:3");
}

TEST_F(TaskOptionsTest, DetectsAddressesOfOtherMachines) {
  ASSERT_OK_AND_ASSIGN(TaskOptions options, Resolve({}));
  EXPECT_EQ(options.remote_address, "");
  const std::string local =
      R"({"cluster":{"ps":["localhost:7"],"worker":["127.0.0.1:8"]},)"
      R"("task":{"type":"ps","index":0}})";
  ASSERT_OK_AND_ASSIGN(options, Resolve({"--tf_config=" + local}));
  EXPECT_EQ(options.remote_address, "");
  ASSERT_OK_AND_ASSIGN(options, Resolve({"--bind_address=[::]:7"}));
  EXPECT_EQ(options.remote_address, "[::]:7");
  ASSERT_OK_AND_ASSIGN(
      options,
      Resolve({"--bind_address=", std::string("--tf_config=") + kTfConfig}));
  EXPECT_EQ(options.remote_address, "a:1");
}

TEST_F(TaskOptionsTest, TheFilesOfTlsGoTogether) {
  EXPECT_THAT(
      Resolve({"--tls_cert=a.pem", "--tls_ca=ca.pem"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--tls_key")));
  ASSERT_OK_AND_ASSIGN(const TaskOptions options, Resolve({"--tls_key=a.key"}));
  EXPECT_EQ(options.tls.certificate, "a.pem");
  EXPECT_EQ(options.tls.key, "a.key");
  EXPECT_TRUE(options.raw_sockets);
}

TEST_F(TaskOptionsTest, FilesAreConfinedWhereOtherMachinesTakePart) {
  const std::string folder = testing::TempDir();
  const auto normal = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  ASSERT_OK_AND_ASSIGN(TaskOptions options, Resolve({"--run_dir=/run/of/it"}));
  EXPECT_FALSE(options.data_roots.has_value());
  EXPECT_THAT(options.checkpoint_roots, ElementsAre("/run/of/it", normal(".")));
  const std::string remote = std::string("--tf_config=") + kTfConfig;
  ASSERT_OK_AND_ASSIGN(options,
                       Resolve({remote, "--set", "data_dir=" + folder}));
  EXPECT_THAT(options.data_roots,
              Optional(ElementsAre("/run/of/it", normal(folder))));
  EXPECT_THAT(options.checkpoint_roots,
              ElementsAre("/run/of/it", normal(folder)));
  // A folder that does not exist yet counts: another task may create it later.
  ASSERT_OK_AND_ASSIGN(
      options, Resolve({remote, "--set", "recovery_dir=/not/there/yet", "--set",
                        "epochs=7", "--set", "data=/dev/null"}));
  EXPECT_THAT(options.checkpoint_roots,
              ElementsAre("/run/of/it", "/not/there/yet"));
  ASSERT_OK_AND_ASSIGN(options,
                       Resolve({remote, "--data_root=/a,/b", "--run_dir="}));
  EXPECT_THAT(options.data_roots, Optional(ElementsAre("/a", "/b")));
  EXPECT_THAT(options.checkpoint_roots, IsEmpty());
}

TEST_F(TaskOptionsTest, SaysWhichFlagIsOutOfRange) {
  const auto refuses = [&](std::vector<std::string> arguments,
                           const std::string& words) {
    EXPECT_THAT(Resolve(arguments),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  };
  refuses({"--threads=-1"}, "--threads=-1");
  refuses({"--gpu_simulated=-1", "--threads=0"}, "--gpu_simulated=-1");
  refuses({"--gpu_simulated=0", "--gpu_graphs=on"},
          "--gpu_graphs=on: expected \"auto\" or \"off\"");
  refuses({"--gpu_graphs=auto", "--startup_timeout=0s"}, "--startup_timeout=0");
  refuses({"--startup_timeout=5s", "--on_coordinator_loss=weep"},
          "--on_coordinator_loss=weep: \"exit\" or \"wait\"");
  refuses({"--on_coordinator_loss=exit", "--tf_config={"},
          "--tf_config is not");
}

TEST_F(TaskOptionsTest, OptionsOfGpusHaveTheirDefaults) {
  ASSERT_OK_AND_ASSIGN(TaskOptions options, Resolve({}));
  EXPECT_FALSE(options.gpus.tensor_float_32);
  EXPECT_FALSE(options.check_numerics);
  EXPECT_TRUE(options.gpus.captures_steps);
  ASSERT_OK_AND_ASSIGN(
      options,
      Resolve({"--tensor_float_32", "--check_numerics", "--gpu_graphs=off"}));
  EXPECT_FALSE(options.gpus.captures_steps);
  EXPECT_TRUE(options.check_numerics);
  EXPECT_TRUE(options.gpus.tensor_float_32);
}

TEST_F(TaskOptionsTest, LanesOfSynchronousWorkersCanBeSwitchedOff) {
  ASSERT_OK_AND_ASSIGN(TaskOptions options, Resolve({}));
  EXPECT_TRUE(options.shared_memory);
  EXPECT_TRUE(options.raw_sockets);
  EXPECT_TRUE(options.local_connections);
  ASSERT_OK_AND_ASSIGN(options,
                       Resolve({"--noshared_memory", "--raw_sockets=false",
                                "--nolocal_connections", "--peer_timeout=7s",
                                "--hang_report_interval=2m"}));
  EXPECT_FALSE(options.shared_memory);
  EXPECT_FALSE(options.raw_sockets);
  EXPECT_FALSE(options.local_connections);
  EXPECT_EQ(options.peer_timeout, absl::Seconds(7));
  EXPECT_EQ(options.hang_report_interval, absl::Minutes(2));
}

TEST_F(TaskOptionsTest, LanesCanHaveAPortOfTheirOwn) {
  ASSERT_OK_AND_ASSIGN(TaskOptions options, Resolve({}));
  EXPECT_EQ(options.lane_port, 0);
  const std::string remote = std::string("--tf_config=") + kTfConfig;
  ASSERT_OK_AND_ASSIGN(
      options, Resolve({remote, "--bind_address=a:2222", "--lane_port=2223"}));
  EXPECT_EQ(options.lane_port, 2223);
  for (const char* taken :
       {"--bind_address=a:2223", "--status_port=2223", "--control_port=2223"}) {
    absl::FlagSaver saver;
    EXPECT_THAT(Resolve({taken, "--lane_port=2223"}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--lane_port=2223 is also the port of")))
        << taken;
  }
  EXPECT_THAT(Resolve({"--lane_port=65536"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--lane_port=65536: expected 1 to 65535")));
}

TEST_F(TaskOptionsTest, FlagsOfOtherRolesAreAccepted) {
  const ProgramInfo server = {
      .name = "ps",
      .summary = "",
      .usage = "",
      .examples = "",
      .topics = TaskFlags(FlagUsers::kServer),
      .flags_of_others = FlagsOfOtherTasks(FlagUsers::kServer),
      .settings = std::nullopt};
  EXPECT_OK(ParseArguments(server, {std::string("--max_recoveries=3")}));
  EXPECT_THAT(ParseArguments(server, {std::string("--max_recovreies=3")}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean \"max_recoveries\"")));
}

TEST_F(TaskOptionsTest, SettingsAndTheSeedAreTaken) {
  ASSERT_OK_AND_ASSIGN(const TaskOptions options,
                       Resolve({"--set", "data_dir=/data", "--seed=7"}));
  EXPECT_THAT(options.settings,
              testing::ElementsAre(testing::Pair("data_dir", "/data")));
  EXPECT_EQ(options.seed, 7u);
}

TEST_F(TaskOptionsTest, StatusPagesAreOffByDefault) {
  ASSERT_OK_AND_ASSIGN(const TaskOptions options, Resolve({}));
  EXPECT_EQ(options.status.port, std::nullopt);
  EXPECT_EQ(options.log_format, LogFormat::kText);
}

TEST_F(TaskOptionsTest, StatusPagesAreNamedAfterTheJobFile) {
  ASSERT_OK_AND_ASSIGN(const TaskOptions options,
                       Resolve({"--status_port=0", "--job=jobs/digits.job",
                                "--log_format=json", "--log_severity=error"}));
  EXPECT_EQ(options.status.port, 0);
  EXPECT_EQ(options.status.host, "localhost");
  EXPECT_EQ(options.status.job_label, "digits");
  EXPECT_EQ(options.log_format, LogFormat::kJson);
  EXPECT_EQ(options.log_severity, LogSeverity::kError);
  ASSERT_OK_AND_ASSIGN(const TaskOptions named,
                       Resolve({"--job=digits.job", "--status_job=mine"}));
  EXPECT_EQ(named.status.job_label, "mine");
}

TEST_F(TaskOptionsTest, ATlsFolderHasTheFilesOfEveryTask) {
  ASSERT_OK_AND_ASSIGN(
      const TaskOptions options,
      Resolve({std::string("--tf_config=") + kTfConfig, "--tls_dir=certs"}));
  EXPECT_EQ(options.tls.certificate, "certs/worker-1.pem");
  EXPECT_EQ(options.tls.key, "certs/worker-1.key");
  EXPECT_EQ(options.tls.ca, "certs/ca.pem");
  EXPECT_TRUE(options.raw_sockets);
  ASSERT_OK_AND_ASSIGN(
      const TaskOptions evaluator,
      Resolve({R"(--tf_config={"task":{"type":"evaluator","index":0}})"}));
  EXPECT_TRUE(evaluator.tls.empty());
  EXPECT_THAT(Resolve({"--tls_cert=a.pem"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("either the folder or the files")));
}

TEST_F(TaskOptionsTest, SlurmAndKubernetesGiveTheCluster) {
  const std::map<std::string, std::string> step = {
      {"SLURM_STEP_NODELIST", "node[0-1]"},
      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
      {"SLURM_STEP_NUM_TASKS", "4"},
      {"SLURM_PROCID", "3"}};
  for (const auto& [name, value] : step) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  const absl::StatusOr<TaskOptions> options =
      Resolve({"--cluster_tasks=chief=1,ps=1,worker=2", "--port_base=2222"});
  const absl::StatusOr<TaskOptions> of_kubernetes =
      Resolve({"--cluster_resolver=kubernetes", "--cluster_tasks=worker=1"});
  for (const auto& [name, value] : step) unsetenv(name.c_str());
  ASSERT_OK(options);
  EXPECT_EQ(options->config.task, (TaskId{TaskType::kWorker, 1}));
  EXPECT_EQ(options->config.cluster.ToString(),
            R"({"chief":["node0:2222"],"worker":["node1:2222","node1:2223"],)"
            R"("ps":["node0:2223"]})");
  EXPECT_EQ(options->listen_address, "[::]:2223");
  EXPECT_EQ(options->remote_address, "node0:2222");
  EXPECT_THAT(of_kubernetes, StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("expected NAME-ROLE-INDEX")));
}

TEST_F(TaskOptionsTest, StatusPagesForOtherMachinesNeedAToken) {
  EXPECT_THAT(Resolve({"--status_port=9090", "--status_host=0.0.0.0"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--status_token_file is required")));
  EXPECT_OK(Resolve({"--status_port=9090", "--status_host=0.0.0.0",
                     "--status_token_file=token"})
                .status());
  EXPECT_THAT(Resolve({"--status_port=65536"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected 0 to 65535")));
}

TEST_F(TaskOptionsTest, RefusesUnknownLogOptions) {
  EXPECT_THAT(Resolve({"--log_format=xml"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("json")));
  EXPECT_THAT(
      Resolve({"--log_format=text", "--log_severity=debug"}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("warning")));
}

}  // namespace
}  // namespace muster
