// Operates running clusters with musterctl.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/net/rpc/certificate_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};

const std::vector<std::string>& ControlFlags() {
  static const auto* const flags =
      new std::vector<std::string>{"--status_port=0", "--control_port=0"};
  return *flags;
}

class JobControlTest : public testing::Test {
 protected:
  struct Answer {
    int exit_code = -1;
    std::string text;
  };

  void Create(int worker_count, int ps_count) {
    const std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_OK_AND_ASSIGN(
        cluster_, ClusterUnderTest::Create(name, worker_count, ps_count));
    // More epochs than any test needs.
    cluster_->set_epochs(1'000'000);
    folder_ = absl::StrCat(testing::TempDir(), "/", name, "_certificates");
  }

  // Waits until `leader` trains, and sends the requests of musterctl to it.
  void AwaitTraining(TaskId leader) {
    ASSERT_OK_AND_ASSIGN(const std::string line,
                         cluster_->process(leader).AwaitLine("status page: "));
    address_ = line.substr(line.find("http://"));
    ASSERT_OK(cluster_->process(leader).AwaitLine("Epoch 2/"));
  }

  // Runs musterctl until it ends.
  Answer Control(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "deploy/musterctl/musterctl");
    arguments.push_back(absl::StrCat("--status=", address_));
    const auto process = ProcessUnderTest::Start(arguments);
    EXPECT_OK(process);
    const auto end = (*process)->AwaitEnd();
    EXPECT_OK(end);
    return {.exit_code = end.ok() ? end->ShellCode() : -1,
            .text = (*process)->output()};
  }

  void ExpectRefusal(const std::vector<std::string>& arguments,
                     const testing::Matcher<std::string>& text) {
    const Answer answer = Control(arguments);
    EXPECT_NE(answer.exit_code, 0) << answer.text;
    EXPECT_THAT(answer.text, text);
  }

  // Requests a checkpoint and reads it.
  void ExpectCheckpoint() {
    const Answer answer = Control({"checkpoint"});
    ASSERT_EQ(answer.exit_code, 0) << answer.text;
    const std::string prefix(absl::StripSuffix(answer.text, "\n"));
    EXPECT_THAT(prefix, AllOf(HasSubstr(cluster_->run_dir()),
                              HasSubstr("requested_checkpoints/ckpt-")));
    ASSERT_OK_AND_ASSIGN(const auto reader,
                         TensorBundleReader::Open(Disk::Real(), prefix));
    EXPECT_OK(reader->Verify());
    EXPECT_GT(reader->tensors().size(), 6);
  }

  // Records a trace of the running job.
  void ExpectTraceOf(const std::vector<std::string>& tasks) {
    const Answer answer = Control({"trace", "--duration=300ms"});
    ASSERT_EQ(answer.exit_code, 0) << answer.text;
    const Json trace = Json::parse(answer.text, nullptr, false);
    ASSERT_TRUE(trace.is_object()) << answer.text.substr(0, 1000);
    std::map<int, std::string> names;
    std::map<std::string, int> span_counts;
    for (const Json& event : trace["traceEvents"]) {
      const int process = event["pid"];
      if (event["ph"] == "M") {
        names[process] = event["args"]["name"];
      } else {
        ++span_counts[names[process]];
      }
    }
    for (const std::string& task : tasks) {
      EXPECT_GT(span_counts[task], 0) << task;
    }
    EXPECT_EQ(names.size(), tasks.size());
  }

  void ExpectEndsWith(TaskId task, int exit_code) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                         cluster_->process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), exit_code) << task << " wrote:\n"
                                          << cluster_->process(task).output();
  }

  Json Summary() const {
    std::ifstream file(cluster_->run_dir() + "/summary.json");
    return Json::parse(file, nullptr, /*allow_exceptions=*/false);
  }

  // Stops the job. All tasks exit as after the last epoch.
  void ExpectStops() {
    const Answer answer = Control({"stop"});
    EXPECT_EQ(answer.exit_code, 0) << answer.text;
    for (const TaskId task : cluster_->cluster().Members()) {
      ASSERT_NO_FATAL_FAILURE(ExpectEndsWith(task, 0));
    }
    for (const char* const file : {"summary.json", "final_weights.index"}) {
      EXPECT_TRUE(
          std::filesystem::exists(absl::StrCat(cluster_->run_dir(), "/", file)))
          << file;
    }
  }

  std::vector<std::string> Certificate(const CertificateAuthority& authority,
                                       const SpiffeId& task) {
    std::filesystem::create_directories(folder_);
    const absl::StatusOr<TlsFiles> files =
        WriteTaskFiles(authority, task, folder_);
    EXPECT_OK(files);
    return {absl::StrCat("--tls_cert=", files->certificate),
            absl::StrCat("--tls_key=", files->key),
            absl::StrCat("--tls_ca=", files->ca)};
  }

  std::unique_ptr<ClusterUnderTest> cluster_;
  std::string address_;
  std::string folder_;
};

TEST_F(JobControlTest, ShowsAJob) {
  ASSERT_NO_FATAL_FAILURE(Create(2, 1));
  ASSERT_OK(cluster_->StartAll({"--status_port=0"}));
  ASSERT_NO_FATAL_FAILURE(AwaitTraining(kChief));
  const Answer text = Control({"status"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.text,
              AllOf(HasSubstr("digits: chief on "), HasSubstr(", ready\n"),
                    HasSubstr("examples/s"), HasSubstr("worker 1"),
                    HasSubstr("connected"), HasSubstr("updates")));
  const Answer json = Control({"status", "--json"});
  EXPECT_EQ(json.exit_code, 0);
  const Json status = Json::parse(json.text, nullptr, false);
  ASSERT_TRUE(status.is_object()) << json.text;
  EXPECT_EQ(status["process"]["role"], "chief");
  EXPECT_FALSE(status.contains("control"));
  EXPECT_THAT(Control({"slow"}).text,
              AllOf(HasSubstr("worker 0"), HasSubstr("the median worker")));
}

TEST_F(JobControlTest, WatchesAJobToItsEnd) {
  ASSERT_NO_FATAL_FAILURE(Create(1, 1));
  ASSERT_OK(cluster_->StartAll(ControlFlags()));
  ASSERT_NO_FATAL_FAILURE(AwaitTraining(kChief));
  ASSERT_OK_AND_ASSIGN(
      const auto watch,
      ProcessUnderTest::Start({"deploy/musterctl/musterctl", "watch",
                               "--interval=100ms",
                               absl::StrCat("--status=", address_)}));
  ASSERT_OK(watch->AwaitLine("epoch "));
  ASSERT_OK(watch->AwaitLine("epoch "));
  ExpectStops();
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, watch->AwaitEnd());
  EXPECT_TRUE(end.ok()) << watch->output();
  EXPECT_THAT(watch->output(), HasSubstr("the task has ended"));
}

TEST_F(JobControlTest, ControlsParameterServerTraining) {
  ASSERT_NO_FATAL_FAILURE(Create(2, 2));
  ASSERT_OK(cluster_->StartAll(ControlFlags()));
  ASSERT_NO_FATAL_FAILURE(AwaitTraining(kChief));
  ASSERT_NO_FATAL_FAILURE(ExpectCheckpoint());
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(
        ExpectTraceOf({"chief 0", "worker 0", "worker 1", "ps 0", "ps 1"}));
  }
  ExpectRefusal({"trace", "--duration=1h"}, HasSubstr("expected 1ms to 10m"));

  const Answer drained = Control({"drain", "worker:1"});
  EXPECT_EQ(drained.exit_code, 0) << drained.text;
  ASSERT_NO_FATAL_FAILURE(ExpectEndsWith(kWorker1, 0));
  EXPECT_THAT(cluster_->process(kWorker1).output(),
              AllOf(HasSubstr("has been drained and leaves the job"),
                    testing::Not(HasSubstr("the job has ended"))));
  // A drained worker is not reported as lost.
  EXPECT_THAT(cluster_->process(kChief).output(),
              testing::Not(HasSubstr("is lost")));
  ASSERT_NO_FATAL_FAILURE(ExpectCheckpoint());

  ExpectRefusal({"drain", "worker:0"},
                AllOf(HasSubstr("worker 0"), HasSubstr("musterctl stop")));
  ExpectRefusal({"drain", "worker:1"}, HasSubstr("no part of the job"));
  ExpectRefusal({"drain", "worker:7"}, HasSubstr("there is no worker 7"));
  ExpectRefusal({"drain", "ps:0"}, HasSubstr("only workers can leave"));
  ExpectRefusal({"drain", "wroker:0"}, HasSubstr("worker"));
  ExpectStops();
}

TEST_F(JobControlTest, ControlsSynchronousTraining) {
  ASSERT_NO_FATAL_FAILURE(Create(2, 0));
  ASSERT_OK(cluster_->StartAll(ControlFlags()));
  ASSERT_NO_FATAL_FAILURE(AwaitTraining(kWorker0));
  ASSERT_NO_FATAL_FAILURE(ExpectCheckpoint());
  ASSERT_NO_FATAL_FAILURE(ExpectCheckpoint());
  ASSERT_NO_FATAL_FAILURE(ExpectTraceOf({"worker 0", "worker 1"}));
  ExpectRefusal({"drain", "worker:1"},
                AllOf(HasSubstr("worker 1"), HasSubstr("fewer tasks")));
  ExpectStops();
}

// The resumed job ends with the same bits as a job that was not stopped.
TEST_F(JobControlTest, AStoppedJobIsContinuedAtTheStepWhereItStopped) {
  ASSERT_NO_FATAL_FAILURE(Create(2, 0));
  const std::string& run_dir = cluster_->run_dir();
  std::filesystem::remove_all(run_dir);
  std::filesystem::create_directories(run_dir);
  const std::string job = run_dir + "/backed_up.job";
  std::ifstream original("examples/digits/digits.job");
  std::ofstream(job) << original.rdbuf()
                     << "callbacks { backup_and_restore { backup_dir: "
                        "\"${run_dir}/backup\" } }\n";
  cluster_->set_job(job);
  std::vector<std::string> flags = ControlFlags();
  flags.insert(flags.end(),
               {"--set", absl::StrCat("data_dir=",
                                      std::filesystem::current_path().string(),
                                      "/examples/data/digits")});
  ASSERT_OK(cluster_->StartAll(flags));
  ASSERT_NO_FATAL_FAILURE(AwaitTraining(kWorker0));
  ASSERT_NO_FATAL_FAILURE(ExpectStops());
  const size_t epochs = Summary()["history"]["epoch"].size();

  std::vector<std::string> hashes;
  for (const bool resumes : {true, false}) {
    // The folder of a finished run is rejected by another run.
    if (!resumes) std::filesystem::remove(run_dir + "/summary.json");
    cluster_->set_epochs(static_cast<int>(epochs) + 2);
    for (const TaskId task : cluster_->cluster().Members()) {
      ASSERT_OK(cluster_->Start(task, flags));
    }
    for (const TaskId task : cluster_->cluster().Members()) {
      ASSERT_NO_FATAL_FAILURE(ExpectEndsWith(task, 0));
    }
    const std::string& output = cluster_->process(kWorker0).output();
    EXPECT_EQ(absl::StrContains(output, "Resuming in epoch "), resumes)
        << output;
    hashes.push_back(Summary()["weights_sha256"]);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST_F(JobControlTest, OnlyTheLeaderTakesRequests) {
  ASSERT_NO_FATAL_FAILURE(Create(2, 0));
  ASSERT_OK(cluster_->StartAll(ControlFlags()));
  ASSERT_OK_AND_ASSIGN(const std::string line,
                       cluster_->process(kWorker1).AwaitLine("status page: "));
  address_ = line.substr(line.find("http://"));
  ExpectRefusal({"stop"},
                AllOf(HasSubstr("worker 1"), HasSubstr("takes no requests"),
                      HasSubstr("--control_port")));
}

TEST_F(JobControlTest, WithTlsOnlyAnOperatorOrTheChiefMayAsk) {
  ASSERT_NO_FATAL_FAILURE(Create(1, 1));
  ASSERT_OK_AND_ASSIGN(const auto authority,
                       CertificateAuthority::Create(absl::Hours(1)));
  for (const TaskId task : {kPs0, kWorker0, kChief}) {
    std::vector<std::string> flags = Certificate(
        *authority, {"job1", std::string(TaskTypeName(task.type)), task.index});
    flags.insert(flags.end(), ControlFlags().begin(), ControlFlags().end());
    ASSERT_OK(cluster_->Start(task, flags));
  }
  ASSERT_NO_FATAL_FAILURE(AwaitTraining(kChief));
  const auto as = [&](const char* command, const SpiffeId& caller) {
    std::vector<std::string> arguments = Certificate(*authority, caller);
    arguments.insert(arguments.begin(), {command, "--timeout=20s"});
    return arguments;
  };
  ExpectRefusal(as("checkpoint", {"job1", "worker", 0}),
                HasSubstr("worker 0 may not call /muster.Job/Checkpoint"));
  ExpectRefusal(as("checkpoint", {"job2", "operator", 0}), HasSubstr("chief"));
  ExpectRefusal({"checkpoint", "--timeout=5s"}, HasSubstr("chief"));
  const Answer as_operator = Control(as("checkpoint", {"job1", "operator", 0}));
  EXPECT_EQ(as_operator.exit_code, 0) << as_operator.text;
  const Answer as_chief = Control(as("stop", {"job1", "chief", 0}));
  EXPECT_EQ(as_chief.exit_code, 0) << as_chief.text;
  ExpectEndsWith(kChief, 0);
}

}  // namespace
}  // namespace muster
