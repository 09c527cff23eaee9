// Workers on simulated GPUs train like workers on CPUs. Synchronous workers
// exchange gradients over the transports of the host. In deterministic mode
// they compute the same bits for any number of workers, and the survivors of a
// lost worker exit with a request to be restarted. Workers of parameter servers
// run their closures on gpu:0.
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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

using testing::HasSubstr;

constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};

// A hundred steps in four epochs, with dropout and a last batch of 7 rows.
constexpr absl::string_view kJob = R"(
  model { sequential {
    layers { dense { units: 12 activation: RELU } }
    layers { dropout { rate: ${dropout} } }
    layers { dense { units: 3 } }
  } }
  variables { name: "epochs" default: "4" }
  variables { name: "device" default: "gpu:0" }
  variables { name: "micro_batches" default: "0" }
  variables { name: "examples" default: "391" }
  variables { name: "dropout" default: "0.2" }
  train { synthetic { example_count: ${examples} feature_count: 6 class_count: 3
                      seed: 4 } }
  test { synthetic { example_count: 41 feature_count: 6 class_count: 3
                     seed: 4 } }
  batch_size: 16
  epochs: ${epochs}
  loss { sparse_categorical_crossentropy { from_logits: true } }
  metrics { sparse_categorical_accuracy {} }
  seed: 11
)";

constexpr absl::string_view kAdam = "adam { learning_rate: 0.02 }";

constexpr absl::string_view kSynchronous = R"(
  strategy { multi_worker_mirrored {
    devices: "${device}"
    deterministic_micro_batches: ${micro_batches}
  } }
  input { auto_shard_policy: DATA }
)";

bool UsesGpu(const ProcessUnderTest& process) {
  return process.output().find("nodes on gpu:0,") != std::string::npos;
}

void ExpectSameResults(const nlohmann::json& gpu, const nlohmann::json& cpu) {
  for (const char* const name :
       {"loss", "sparse_categorical_accuracy", "test_loss",
        "test_sparse_categorical_accuracy"}) {
    EXPECT_NEAR(gpu["final"][name], cpu["final"][name], 1e-4) << name;
  }
}

class DeviceWorkersTest : public testing::Test {
 protected:
  // Starts `worker_count` workers, each with a simulated GPU.
  absl::StatusOr<std::unique_ptr<ClusterUnderTest>> Start(
      int worker_count, const std::string& device, int micro_batches,
      int epochs, absl::string_view optimizer = kAdam) {
    const std::string name = absl::StrCat(
        testing::UnitTest::GetInstance()->current_test_info()->name(), "-",
        worker_count, "-", device, "-", micro_batches, "-",
        optimizer.substr(0, optimizer.find(' ')));
    const std::string job = absl::StrCat(testing::TempDir(), "/", name, ".job");
    std::ofstream(job) << kJob << "optimizer { " << optimizer << " }"
                       << kSynchronous;
    ASSIGN_OR_RETURN(auto cluster,
                     ClusterUnderTest::Create(name, worker_count, 0));
    cluster->set_job(job);
    cluster->set_epochs(epochs);
    RETURN_IF_ERROR(
        cluster->StartAll({"--gpu_simulated=1", "--threads=1", "--set",
                           absl::StrCat("device=", device), "--set",
                           absl::StrCat("micro_batches=", micro_batches)}));
    return cluster;
  }

  // Returns the summary of a hundred steps.
  absl::StatusOr<nlohmann::json> Train(int worker_count,
                                       const std::string& device,
                                       int micro_batches,
                                       absl::string_view optimizer = kAdam) {
    ASSIGN_OR_RETURN(const auto cluster,
                     Start(worker_count, device, micro_batches, 4, optimizer));
    for (const TaskId& task : cluster->cluster().Members()) {
      ProcessUnderTest& process = cluster->process(task);
      ASSIGN_OR_RETURN(const ProcessEnd end, process.AwaitEnd());
      if (end.ShellCode() != 0) return absl::InternalError(process.output());
      EXPECT_EQ(UsesGpu(process), device == "gpu:0") << process.output();
    }
    std::ifstream file(cluster->run_dir() + "/summary.json");
    return nlohmann::json::parse(file);
  }

  // Returns the summary of `worker_count` workers with two parameter servers.
  // The model has no dropout, because its seeds depend on the closures.
  absl::StatusOr<nlohmann::json> TrainOnServers(int worker_count, int gpu_count,
                                                int example_count, int epochs) {
    const std::string name = absl::StrCat(
        testing::UnitTest::GetInstance()->current_test_info()->name(), "-",
        gpu_count);
    const std::string job = absl::StrCat(testing::TempDir(), "/", name, ".job");
    std::ofstream(job) << kJob << "optimizer { " << kAdam << " }";
    ASSIGN_OR_RETURN(const auto cluster,
                     ClusterUnderTest::Create(name, worker_count, 2));
    cluster->set_job(job);
    cluster->set_epochs(epochs);
    for (int i = 0; i < worker_count; ++i) {
      RETURN_IF_ERROR(cluster
                          ->Start({TaskType::kWorker, i},
                                  {absl::StrCat("--gpu_simulated=", gpu_count)})
                          .status());
    }
    for (int i = 0; i < 2; ++i) {
      RETURN_IF_ERROR(cluster->Start({TaskType::kPs, i}).status());
    }
    RETURN_IF_ERROR(
        cluster
            ->Start(ClusterUnderTest::kChief,
                    {"--set", absl::StrCat("examples=", example_count), "--set",
                     "dropout=0"})
            .status());
    for (const TaskId& task : cluster->cluster().Members()) {
      ProcessUnderTest& process = cluster->process(task);
      ASSIGN_OR_RETURN(const ProcessEnd end, process.AwaitEnd());
      if (end.ShellCode() != 0) return absl::InternalError(process.output());
      EXPECT_EQ(UsesGpu(process),
                task.type == TaskType::kWorker && gpu_count > 0)
          << process.output();
    }
    std::ifstream file(cluster->run_dir() + "/summary.json");
    return nlohmann::json::parse(file);
  }
};

TEST_F(DeviceWorkersTest, WorkersOnGpusTrainAsWorkersOnCpus) {
  ASSERT_OK_AND_ASSIGN(const nlohmann::json cpu, Train(2, "cpu:0", 0));
  ASSERT_OK_AND_ASSIGN(const nlohmann::json gpu, Train(2, "gpu:0", 0));
  EXPECT_GE(cpu["final"]["test_sparse_categorical_accuracy"], 0.8);
  ExpectSameResults(gpu, cpu);
}

TEST_F(DeviceWorkersTest, StagesOfOptimizersTrainAsOnCpus) {
  for (const absl::string_view optimizer :
       {"adam { learning_rate: 0.05 } gradient_accumulation_steps: 3 "
        "use_ema: true ema_momentum: 0.5 ema_overwrite_frequency: 4",
        "lamb { learning_rate: 0.02 }"}) {
    SCOPED_TRACE(optimizer);
    ASSERT_OK_AND_ASSIGN(const nlohmann::json cpu,
                         Train(2, "cpu:0", 0, optimizer));
    ASSERT_OK_AND_ASSIGN(const nlohmann::json gpu,
                         Train(2, "gpu:0", 0, optimizer));
    EXPECT_GE(cpu["final"]["test_sparse_categorical_accuracy"], 0.8);
    ExpectSameResults(gpu, cpu);
  }
}

TEST_F(DeviceWorkersTest, ClosuresOnAGpuTrainAsOnACpu) {
  // Only one step: several steps would overlap and read variables before the
  // others have updated them.
  ASSERT_OK_AND_ASSIGN(const nlohmann::json cpu, TrainOnServers(1, 0, 16, 1));
  ASSERT_OK_AND_ASSIGN(const nlohmann::json gpu, TrainOnServers(1, 1, 16, 1));
  ExpectSameResults(gpu, cpu);
}

TEST_F(DeviceWorkersTest, SeveralGpuWorkersShareParameterServers) {
  ASSERT_OK_AND_ASSIGN(const nlohmann::json gpu, TrainOnServers(2, 1, 391, 4));
  EXPECT_GE(gpu["final"]["test_sparse_categorical_accuracy"], 0.8);
}

TEST_F(DeviceWorkersTest, DeterministicModeIsBitIdentical) {
  ASSERT_OK_AND_ASSIGN(const nlohmann::json one, Train(1, "gpu:0", 4));
  const std::string sha256 = one["weights_sha256"];
  EXPECT_EQ(sha256.size(), 64u);
  for (const int workers : {2, 4}) {
    ASSERT_OK_AND_ASSIGN(const nlohmann::json several,
                         Train(workers, "gpu:0", 4));
    EXPECT_EQ(several["weights_sha256"], sha256) << workers << " workers";
  }
}

TEST_F(DeviceWorkersTest, SurvivorsOfAKilledWorkerAskToBeRestarted) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Start(2, "gpu:0", 0, 1'000'000));
  ASSERT_OK(cluster->process(kWorker0).AwaitLine("Epoch 3/"));
  cluster->process(kWorker1).SendSignal(SIGKILL);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                       cluster->process(kWorker0).AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 138) << cluster->process(kWorker0).output();
  EXPECT_THAT(cluster->process(kWorker0).output(), HasSubstr("worker 1"));
}

}  // namespace
}  // namespace muster
