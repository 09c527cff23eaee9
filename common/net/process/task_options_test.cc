#include "common/net/process/task_options.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "common/net/process/program_info.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

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

TEST_F(TaskOptionsTest, WithNothingSaidOneProcessDoesEverything) {
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

TEST_F(TaskOptionsTest, SaysWhichFlagIsOutOfRange) {
  const auto refuses = [&](std::vector<std::string> arguments,
                           const std::string& words) {
    EXPECT_THAT(Resolve(arguments),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  };
  refuses({"--threads=-1"}, "--threads=-1");
  refuses({"--gpu_simulated=-1", "--threads=0"}, "--gpu_simulated=-1");
  refuses({"--gpu_simulated=0", "--startup_timeout=0s"}, "--startup_timeout=0");
  refuses({"--startup_timeout=5s", "--on_coordinator_loss=weep"},
          "--on_coordinator_loss=weep: \"exit\" or \"wait\"");
  refuses({"--on_coordinator_loss=exit", "--tf_config={"},
          "--tf_config is not");
}

TEST_F(TaskOptionsTest, LanesOfSynchronousWorkersCanBeSwitchedOff) {
  ASSERT_OK_AND_ASSIGN(TaskOptions options, Resolve({}));
  EXPECT_TRUE(options.shared_memory);
  EXPECT_TRUE(options.raw_sockets);
  ASSERT_OK_AND_ASSIGN(
      options, Resolve({"--noshared_memory", "--raw_sockets=false",
                        "--peer_timeout=7s", "--hang_report_interval=2m"}));
  EXPECT_FALSE(options.shared_memory);
  EXPECT_FALSE(options.raw_sockets);
  EXPECT_EQ(options.peer_timeout, absl::Seconds(7));
  EXPECT_EQ(options.hang_report_interval, absl::Minutes(2));
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

}  // namespace
}  // namespace muster
