#include "common/net/process/program.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/device_set.h"
#include "common/net/process/program_info.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

class ProgramTest : public testing::Test {
 protected:
  std::variant<TaskOptions, ExitCode> Start(
      std::vector<const char*> arguments,
      absl::Status checked = absl::OkStatus()) {
    arguments.insert(arguments.begin(), "tester");
    return StartProgram(program_, static_cast<int>(arguments.size()),
                        arguments.data(),
                        [&](const TaskOptions&) { return checked; });
  }

  const ProgramInfo program_ = {.name = "tester",
                                .summary = "Tests.",
                                .usage = "tester",
                                .examples = "",
                                .topics = TaskFlags(FlagUsers::kAny),
                                .settings = std::nullopt};
  absl::FlagSaver saver_;
};

TEST_F(ProgramTest, AGoodCommandLineStartsTheProgram) {
  const auto start = Start({"--job=a.job", "--tf_config={}"});
  ASSERT_TRUE(std::holds_alternative<TaskOptions>(start));
  EXPECT_EQ(std::get<TaskOptions>(start).job_file, "a.job");
}

TEST_F(ProgramTest, FlagsOfGpusAreSettingsOfTheDevices) {
  const auto start =
      Start({"--gpu_simulated=2", "--tensor_float_32", "--gpu_graphs=off"});
  ASSERT_TRUE(std::holds_alternative<TaskOptions>(start));
  ASSERT_OK_AND_ASSIGN(Device* const device,
                       DeviceSet::OfProcess().FindDevice(1));
  EXPECT_TRUE(device->description().is_simulated);
  EXPECT_TRUE(device->tensor_float_32());
  EXPECT_FALSE(device->captures_steps());
}

TEST_F(ProgramTest, QuestionsAreAnsweredOnStandardOutput) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(std::get<ExitCode>(Start({"--help"})), ExitCode::kOk);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("--run_dir"));
  testing::internal::CaptureStdout();
  EXPECT_EQ(std::get<ExitCode>(Start({"--version"})), ExitCode::kOk);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "tester 0.1.0\n");
  testing::internal::CaptureStdout();
  EXPECT_EQ(std::get<ExitCode>(
                Start({"--check_config", "--ps_hosts=p:1", "--worker_hosts=w:1",
                       "--job_name=ps", "--task_index=0", "--insecure"})),
            ExitCode::kOk);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("ps 0         p:1  <- this task"));
}

TEST_F(ProgramTest, MistakesEndWithTheUsageStatusAndTheWayToHelp) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(std::get<ExitCode>(Start({"--jib=a"})), ExitCode::kUsage);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tester: tester has no flag --jib; did you mean \"job\"?\n"
            "Try: tester --help\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(std::get<ExitCode>(
                Start({"--check_config"}, absl::NotFoundError("no job"))),
            ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no job"));
}

TEST_F(ProgramTest, TheStatusDecidesHowAProcessEnds) {
  EXPECT_EQ(FinishProgram(program_, absl::OkStatus()), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(FinishProgram(program_, WithExitCode(absl::AbortedError("replaced"),
                                                 ExitCode::kRestartMe)),
            138);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tester: replaced\n");
}

}  // namespace
}  // namespace muster
