// Synchronous workers that continue while others are killed, stopped and
// started again. The weights are bitwise those of an undisturbed run.
#include <signal.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr int kWorkerCount = 3;

TaskId Worker(int index) { return {TaskType::kWorker, index}; }

class ContinuingWorkersTest : public testing::Test {
 protected:
  std::unique_ptr<ClusterUnderTest> Create(absl::string_view suffix) {
    auto cluster = *ClusterUnderTest::Create(
        absl::StrCat(
            testing::UnitTest::GetInstance()->current_test_info()->name(),
            suffix),
        kWorkerCount, 0);
    cluster->set_job("tests/faults/continuing_digits.job");
    cluster->set_epochs(epochs_);
    return cluster;
  }

  // Trains without a disturbance, and returns the hash of the weights.
  std::string UndisturbedWeights() {
    const auto cluster = Create("-undisturbed");
    EXPECT_OK(cluster->StartAll(FlagsOf(*cluster, /*min_workers=*/0)));
    for (int i = 0; i < kWorkerCount; ++i) ExpectSuccess(*cluster, i);
    undisturbed_log_ = ContentOf(cluster->run_dir() + "/log.csv");
    EXPECT_FALSE(undisturbed_log_.empty());
    return WeightsOf(*cluster);
  }

  std::vector<std::string> FlagsOf(const ClusterUnderTest& cluster,
                                   int min_workers) {
    return {"--run_dir", cluster.run_dir(),
            absl::StrCat("--min_workers=", min_workers), "--set",
            absl::StrCat("micro_batches=", micro_batches_)};
  }

  void StartDisturbed(int min_workers = 1) {
    cluster_ = Create("");
    flags_ = FlagsOf(*cluster_, min_workers);
    ASSERT_OK(cluster_->StartAll(flags_));
    // Lost workers leave a moment after training has begun, too.
    for (int i = 0; i < kWorkerCount; ++i) AwaitLine(i, "Epoch");
  }

  // Every worker writes this line once it trains, except that only the chief
  // shows epochs.
  void AwaitLine(int index, const std::string& text) {
    if (text == "Epoch" && index != 0) return;
    ASSERT_OK(cluster_->process(Worker(index)).AwaitLine(text)) << text;
  }

  void Kill(int index, int signal = SIGKILL) {
    cluster_->process(Worker(index)).SendSignal(signal);
    ASSERT_OK(cluster_->process(Worker(index)).AwaitEnd().status());
  }

  void Return(int index) {
    ASSERT_OK(cluster_->Start(Worker(index), flags_).status());
    AwaitLine(index, "joins training in epoch");
  }

  static void ExpectSuccess(ClusterUnderTest& cluster, int index) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                         cluster.process(Worker(index)).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 0) << "worker " << index << " wrote:\n"
                                  << cluster.process(Worker(index)).output();
  }

  static std::string ContentOf(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream content;
    content << file.rdbuf();
    return content.str();
  }

  static std::string WeightsOf(const ClusterUnderTest& cluster) {
    const nlohmann::json summary = nlohmann::json::parse(
        ContentOf(cluster.run_dir() + "/summary.json"), nullptr, false);
    EXPECT_TRUE(summary.is_object());
    return summary.is_object() ? summary["weights_sha256"] : "";
  }

  // Expects the weights and the log of an undisturbed run.
  void ExpectUndisturbedResult() {
    EXPECT_EQ(WeightsOf(*cluster_), UndisturbedWeights());
    EXPECT_EQ(ContentOf(cluster_->run_dir() + "/log.csv"), undisturbed_log_);
  }

  int epochs_ = 400;
  int micro_batches_ = 4;
  std::unique_ptr<ClusterUnderTest> cluster_;
  std::vector<std::string> flags_;
  std::string undisturbed_log_;
};

TEST_F(ContinuingWorkersTest, WithoutAKilledWorker) {
  StartDisturbed();
  AwaitLine(0, "Epoch 20/");
  Kill(1);
  AwaitLine(0, "training continues without worker 1");
  ExpectSuccess(*cluster_, 0);
  ExpectSuccess(*cluster_, 2);
  ExpectUndisturbedResult();
}

TEST_F(ContinuingWorkersTest, WithoutTheChiefAndThenWithoutTheNext) {
  StartDisturbed();
  AwaitLine(0, "Epoch 20/");
  Kill(0);
  AwaitLine(1, "this worker is the chief from now on");
  AwaitLine(1, "Epoch ");
  Kill(1);
  AwaitLine(2, "this worker is the chief from now on");
  ExpectSuccess(*cluster_, 2);
  ExpectUndisturbedResult();
}

TEST_F(ContinuingWorkersTest, WithWorkersThatReturn) {
  epochs_ = 1200;
  StartDisturbed();
  AwaitLine(0, "Epoch 20/");
  for (const int index : {1, 0, 2}) {
    Kill(index);
    Return(index);
  }
  for (int i = 0; i < kWorkerCount; ++i) ExpectSuccess(*cluster_, i);
  ExpectUndisturbedResult();
}

TEST_F(ContinuingWorkersTest, WithoutAWorkerThatIsStoppedByASignal) {
  StartDisturbed();
  AwaitLine(0, "Epoch 20/");
  Kill(2, SIGTERM);
  EXPECT_THAT(cluster_->process(Worker(2)).output(),
              HasSubstr("the others continue"));
  AwaitLine(0, "training continues without worker 2");
  ExpectSuccess(*cluster_, 0);
  ExpectSuccess(*cluster_, 1);
  ExpectUndisturbedResult();
}

TEST_F(ContinuingWorkersTest, WithoutASuspendedWorkerWhichEndsWhenItWakes) {
  epochs_ = 1200;
  StartDisturbed();
  AwaitLine(0, "Epoch 20/");
  cluster_->process(Worker(0)).SendSignal(SIGSTOP);
  AwaitLine(1, "training continues without worker 0");
  cluster_->process(Worker(0)).SendSignal(SIGCONT);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                       cluster_->process(Worker(0)).AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 138);
  Return(0);
  for (int i = 0; i < kWorkerCount; ++i) ExpectSuccess(*cluster_, i);
  ExpectUndisturbedResult();
}

TEST_F(ContinuingWorkersTest, EndsBelowTheMinimum) {
  epochs_ = 100000;
  StartDisturbed(/*min_workers=*/3);
  AwaitLine(0, "Epoch 20/");
  Kill(1);
  for (const int index : {0, 2}) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                         cluster_->process(Worker(index)).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 138);
    EXPECT_THAT(cluster_->process(Worker(index)).output(),
                HasSubstr("2 tasks are left, and the group needs 3"));
  }
}

TEST_F(ContinuingWorkersTest, TrainsToTheSameAccuracyWithoutMicroBatches) {
  micro_batches_ = 0;
  StartDisturbed();
  AwaitLine(0, "Epoch 20/");
  Kill(0);
  AwaitLine(1, "training continues without worker 0");
  ExpectSuccess(*cluster_, 1);
  ExpectSuccess(*cluster_, 2);
  const nlohmann::json summary = nlohmann::json::parse(
      ContentOf(cluster_->run_dir() + "/summary.json"), nullptr, false);
  ASSERT_TRUE(summary.is_object());
  EXPECT_GE(summary["final"]["test_sparse_categorical_accuracy"], 0.93);
  EXPECT_EQ(summary["history"]["epoch"].size(), 400u);
}

}  // namespace
}  // namespace muster
