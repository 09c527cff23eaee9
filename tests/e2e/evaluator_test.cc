// The evaluator as a separate process.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/events/testing/event_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/event.pb.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr char kTfConfig[] =
    R"({"cluster": {"worker": ["localhost:1"], "ps": ["localhost:2"],)"
    R"( "chief": ["localhost:3"]}, "task": {"type": "evaluator", "index": 0}})";

// The parameter is the executable that runs as the evaluator.
class EvaluatorTest : public testing::TestWithParam<std::string> {
 protected:
  EvaluatorTest()
      : run_dir_(absl::StrCat(
            testing::TempDir(), "/evaluator-",
            testing::UnitTest::GetInstance()->current_test_info()->line(), "-",
            GetParam())) {}

  absl::StatusOr<std::unique_ptr<ProcessUnderTest>> StartEvaluator(
      std::vector<std::string> flags = {}) const {
    std::vector<std::string> arguments = {
        absl::StrCat(GetParam(), "/", GetParam()),
        "--job=tests/e2e/evaluator.job", absl::StrCat("--run_dir=", run_dir_)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return ProcessUnderTest::Start(arguments, {{"TF_CONFIG", kTfConfig}});
  }

  absl::Status SaveZeros() const {
    ASSIGN_OR_RETURN(
        const auto manager,
        CheckpointManager::Create({.folder = run_dir_ + "/checkpoints"}));
    return manager
        ->Save([](TensorBundleWriter* writer) -> absl::Status {
          RETURN_IF_ERROR(writer->Add(VariableValueKey("dense/kernel"),
                                      Tensor::Zeros(DType::kFloat32, {4, 1})));
          return writer->Add(VariableValueKey("dense/bias"),
                             Tensor::Zeros(DType::kFloat32, {1}));
        })
        .status();
  }

  const std::string run_dir_;
};

TEST_P(EvaluatorTest, EvaluatesCheckpointsUntilTrainingHasEnded) {
  ASSERT_OK_AND_ASSIGN(const auto evaluator, StartEvaluator());
  EXPECT_OK(evaluator->AwaitLine("waiting for the first checkpoint"));
  ASSERT_OK(SaveZeros());
  EXPECT_OK(evaluator->AwaitLine("ckpt-1 at step 1 - loss: "));
  EXPECT_OK(evaluator->AwaitLine("waiting for a checkpoint after ckpt-1"));

  ASSERT_OK_AND_ASSIGN(
      const auto training,
      ProcessUnderTest::Start({"coordinator/coordinator",
                               "--job=tests/e2e/evaluator.job",
                               absl::StrCat("--run_dir=", run_dir_)}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd training_end, training->AwaitEnd());
  EXPECT_TRUE(training_end.ok()) << training->output();
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, evaluator->AwaitEnd());
  EXPECT_TRUE(end.ok()) << evaluator->output();
  EXPECT_EQ(ScalarsOf(ReadEventFolder(run_dir_ + "/evaluator"),
                      "evaluation_loss_vs_iterations")
                .size(),
            1u);
}

TEST_P(EvaluatorTest, TimesOut) {
  ASSERT_OK_AND_ASSIGN(const auto evaluator,
                       StartEvaluator({"--evaluator_timeout=100ms"}));
  EXPECT_OK(evaluator->AwaitLine("waiting for the first checkpoint"));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, evaluator->AwaitEnd());
  EXPECT_FALSE(end.ok()) << evaluator->output();
}

TEST_P(EvaluatorTest, EndsOnASignal) {
  ASSERT_OK_AND_ASSIGN(const auto evaluator, StartEvaluator());
  EXPECT_OK(evaluator->AwaitLine("waiting for the first checkpoint"));
  evaluator->SendSignal(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, evaluator->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 128 + SIGTERM) << evaluator->output();
}

TEST_P(EvaluatorTest, RequiresTheRunDirectory) {
  ASSERT_OK_AND_ASSIGN(
      const auto evaluator,
      ProcessUnderTest::Start({absl::StrCat(GetParam(), "/", GetParam()),
                               "--job=tests/e2e/evaluator.job"},
                              {{"TF_CONFIG", kTfConfig}}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, evaluator->AwaitEnd());
  EXPECT_FALSE(end.ok());
  EXPECT_THAT(evaluator->output(), HasSubstr("--run_dir"));
}

INSTANTIATE_TEST_SUITE_P(Executables, EvaluatorTest,
                         testing::Values("coordinator", "worker"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster
