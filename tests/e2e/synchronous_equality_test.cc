// The same global batches and seed give the same weights for any number of
// workers: up to rounding, and bit-identical in deterministic mode.

#include <signal.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

absl::StatusOr<nlohmann::json> Train(
    int workers, int micro_batches, std::vector<std::string> flags = {},
    const std::string& sharded_state = "NONE") {
  static int run_count = 0;
  const std::string run_dir =
      absl::StrCat(testing::TempDir(), "/run-", ++run_count);
  flags.insert(flags.begin(),
               {"deploy/launch/launch", absl::StrCat("--workers=", workers),
                "--ps=0", "--cores=1", "--job=tests/e2e/equality.job", "--set",
                absl::StrCat("micro_batches=", micro_batches), "--set",
                absl::StrCat("sharded_state=", sharded_state),
                absl::StrCat("--run_dir=", run_dir)});
  ASSIGN_OR_RETURN(const auto launch, ProcessUnderTest::Start(flags));
  ASSIGN_OR_RETURN(const ProcessEnd end, launch->AwaitEnd());
  if (end.ShellCode() != 0) return absl::InternalError(launch->output());
  std::ifstream file(run_dir + "/summary.json");
  return nlohmann::json::parse(file);
}

TEST(SynchronousEqualityTest, AnyNumberOfWorkersTrainsTheSameModel) {
  ASSERT_OK_AND_ASSIGN(const nlohmann::json one, Train(1, 0));
  EXPECT_GE(one["final"]["test_sparse_categorical_accuracy"], 0.9);
  for (const int workers : {2, 3, 4}) {
    ASSERT_OK_AND_ASSIGN(const nlohmann::json several, Train(workers, 0));
    EXPECT_EQ(several["history"]["epoch"], one["history"]["epoch"]);
    for (const char* const name :
         {"loss", "sparse_categorical_accuracy", "test_loss",
          "test_sparse_categorical_accuracy"}) {
      EXPECT_NEAR(several["final"][name], one["final"][name], 1e-3)
          << workers << " workers, " << name;
    }
  }
}

TEST(SynchronousEqualityTest, DeterministicModeIsBitIdentical) {
  ASSERT_OK_AND_ASSIGN(const nlohmann::json one, Train(1, 6));
  const std::string sha256 = one["weights_sha256"];
  EXPECT_EQ(sha256.size(), 64u);
  for (const int workers : {2, 3, 4}) {
    ASSERT_OK_AND_ASSIGN(const nlohmann::json several, Train(workers, 6));
    EXPECT_EQ(several["weights_sha256"], sha256) << workers << " workers";
  }
  ASSERT_OK_AND_ASSIGN(const nlohmann::json over_sockets,
                       Train(3, 6, {"--noshared_memory"}));
  EXPECT_EQ(over_sockets["weights_sha256"], sha256);
  // Another number of micro-batches rounds differently.
  ASSERT_OK_AND_ASSIGN(const nlohmann::json other, Train(1, 5));
  EXPECT_NE(other["weights_sha256"], sha256);
}

TEST(SynchronousEqualityTest, ShardedStateIsBitIdenticalOverEveryTransport) {
  const std::vector<std::vector<std::string>> transports = {
      {}, {"--noshared_memory"}, {"--noshared_memory", "--noraw_sockets"}};
  for (const std::vector<std::string>& flags : transports) {
    for (const int workers : {2, 4}) {
      SCOPED_TRACE(absl::StrCat(workers, " workers, flags: ", flags.size()));
      ASSERT_OK_AND_ASSIGN(const nlohmann::json whole,
                           Train(workers, 0, flags));
      ASSERT_OK_AND_ASSIGN(const nlohmann::json sharded,
                           Train(workers, 0, flags, "OPTIMIZER"));
      EXPECT_EQ(sharded["weights_sha256"], whole["weights_sha256"]);
      const double ratio = sharded["replica_state_bytes"].get<double>() /
                           whole["replica_state_bytes"].get<double>();
      // Of three tensors for each weight, Adam's two are divided.
      EXPECT_NEAR(ratio, (1 + 2.0 / workers) / 3, 0.03);
    }
  }
}

using ::testing::HasSubstr;

constexpr TaskId kWorker0 = {TaskType::kWorker, 0};

// Starts no process. Returns workers that run equality_program, whose replicas
// exchange values during a step.
std::unique_ptr<ClusterUnderTest> ExchangingWorkers(const std::string& name,
                                                    int count) {
  auto cluster = ClusterUnderTest::Create(name, count, 0);
  EXPECT_OK(cluster);
  (*cluster)->set_program("tests/e2e/equality_program");
  return *std::move(cluster);
}

// Returns the line with the hashes of the weights.
absl::StatusOr<std::string> TrainExchanging(
    int count, const std::vector<std::string>& flags = {}) {
  const auto cluster = ExchangingWorkers(
      absl::StrCat("exchanging-", count, "-", flags.size()), count);
  RETURN_IF_ERROR(cluster->StartAll(flags));
  ASSIGN_OR_RETURN(const std::string line,
                   cluster->process(kWorker0).AwaitLine("ended with "));
  for (int i = 0; i < count; ++i) {
    ProcessUnderTest& worker = cluster->process({TaskType::kWorker, i});
    ASSIGN_OR_RETURN(const ProcessEnd end, worker.AwaitEnd());
    if (end.ShellCode() != 0) return absl::InternalError(worker.output());
  }
  return line;
}

TEST(SynchronousEqualityTest, StepsThatExchangeValuesAreBitIdenticalToo) {
  ASSERT_OK_AND_ASSIGN(const std::string one, TrainExchanging(1));
  for (const int workers : {2, 4}) {
    EXPECT_THAT(TrainExchanging(workers), IsOkAndHolds(one))
        << workers << " workers";
  }
  EXPECT_THAT(TrainExchanging(2, {"--noshared_memory"}), IsOkAndHolds(one));
}

TEST(SynchronousEqualityTest, ALostWorkerEndsStepsThatExchangeValues) {
  const auto cluster = ExchangingWorkers("lost", 2);
  ASSERT_OK(cluster->StartAll());
  ProcessUnderTest& survivor = cluster->process(kWorker0);
  ASSERT_OK(survivor.AwaitLine("Epoch 2/"));
  cluster->process({TaskType::kWorker, 1}).SendSignal(SIGKILL);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, survivor.AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 138) << survivor.output();
  EXPECT_THAT(survivor.output(), HasSubstr("worker 1"));
}

}  // namespace
}  // namespace muster
