// Real processes whose checkpoints and data are in an object store.
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/events/testing/event_file.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/s3_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/event.pb.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::_;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using Action = S3Server::Action;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};
constexpr char kStore[] = "s3://bucket/run";

class ObjectStoreTest : public testing::Test {
 protected:
  ObjectStoreTest()
      : server_(*S3Server::Start()),
        cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)) {
    for (const auto& [name, value] : server_->Environment()) {
      environment_[name] = value;
      setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    }
    std::filesystem::remove_all(cluster_->run_dir());
    cluster_->set_job("tests/faults/object_store_digits.job");
  }

  void Start(TaskId task, std::vector<std::string> flags = {}) {
    flags.push_back("--set");
    flags.push_back(absl::StrCat("store=", kStore));
    flags.push_back("--coordinator_timeout=2s");
    flags.push_back("--on_coordinator_loss=wait");
    ASSERT_OK(cluster_->Start(task, flags, environment_));
  }

  void StartAll(const std::vector<std::string>& chief_flags = {}) {
    for (const TaskId& task : {kPs0, kPs1, kWorker0, kWorker1}) Start(task);
    Start(kChief, chief_flags);
  }

  void Kill(TaskId task) {
    cluster_->process(task).SendSignal(SIGKILL);
    ASSERT_OK(cluster_->process(task).AwaitEnd());
  }

  void AwaitLine(absl::string_view text) {
    ASSERT_OK(cluster_->process(kChief).AwaitLine(text));
  }

  void ExpectChiefEndsWith(int exit_code) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                         cluster_->process(kChief).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), exit_code) << cluster_->process(kChief).output();
  }

  // Returns the events in all event files below `prefix`.
  std::vector<proto::Event> EventsOf(absl::string_view prefix) const {
    const std::string folder =
        absl::StrCat(testing::TempDir(), "/events_of_objects");
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    for (const auto& [key, content] : server_->Objects()) {
      if (!absl::StartsWith(key, prefix)) continue;
      std::ofstream(absl::StrCat(folder, "/", BaseName(key)), std::ios::binary)
          << content;
    }
    return ReadEventFolder(folder);
  }

  const std::unique_ptr<S3Server> server_;
  ProcessUnderTest::Environment environment_;
  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(ObjectStoreTest, TrainingGoesOnAfterServersAndCoordinatorAreKilled) {
  cluster_->set_epochs(60);
  StartAll();
  AwaitLine("Epoch 10/60");
  Kill(kPs1);
  Start(kPs1);
  // The checkpoint for recovery or the backup, whichever is newer.
  AwaitLine("training was rolled back to checkpoint s3://bucket/run/");
  AwaitLine("training is rolled back from epoch");
  AwaitLine("Epoch 25/60");
  Kill(kChief);
  Start(kChief);
  AwaitLine("Epoch 60/60");
  EXPECT_THAT(
      cluster_->process(kChief).output(),
      AllOf(Not(HasSubstr("Epoch 1/60")), Not(HasSubstr("Epoch 20/60"))));
  ExpectChiefEndsWith(0);
}

TEST_F(ObjectStoreTest, DataAndResultsCanBeInTheStore) {
  cluster_->set_run_dir(absl::StrCat(kStore, "/results"));
  for (const std::string name : {"train.csv", "test.csv"}) {
    std::stringstream content;
    content << std::ifstream("examples/data/digits/" + name).rdbuf();
    server_->Set("data/" + name, content.str());
  }
  server_->Set("data/train.txt", "is not read");
  cluster_->set_epochs(3);
  StartAll(
      {"--set", "data_dir=s3://bucket/data", "--set", "train_file=t[r]ai?.c*"});
  AwaitLine("Epoch 3/3");
  ExpectChiefEndsWith(0);
  const auto objects = server_->Objects();
  EXPECT_THAT(objects, Contains(Key("run/results/final_weights.index")));
  EXPECT_THAT(objects, Contains(Key("run/results/summary.json")));
  const std::vector<std::string> lines =
      absl::StrSplit(objects.at("run/log.csv"), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], StartsWith("epoch,loss,"));
  EXPECT_THAT(lines[3], StartsWith("2,"));
  EXPECT_THAT(ScalarsOf(EventsOf("run/board/train/"), "epoch_loss"),
              ElementsAre(Pair(0, _), Pair(1, _), Pair(2, _)));
  Start(kChief);
  ExpectChiefEndsWith(2);
  EXPECT_THAT(cluster_->process(kChief).output(),
              HasSubstr("--run_dir=s3://bucket/run/results holds the results"));
}

// The journal is in the store, too.
TEST_F(ObjectStoreTest, AReturningCoordinatorContinuesBetweenTwoSteps) {
  cluster_->set_program("tests/faults/fit_counting_program");
  const std::vector<std::string> flags = {
      absl::StrCat("--run_dir=", kStore, "/counted"), "--set", "epochs=60"};
  for (const TaskId& task : {kPs0, kPs1, kWorker0, kWorker1, kChief}) {
    ASSERT_OK(cluster_->Start(task, flags, environment_));
  }
  AwaitLine("end of epoch 10");
  Kill(kChief);
  ASSERT_OK(cluster_->Start(kChief, flags, environment_));
  AwaitLine("continuing the training of the last coordinator");
  AwaitLine("every step counted once: 6000");
  ExpectChiefEndsWith(0);
}

// The logs of the tasks stay on the machine.
TEST_F(ObjectStoreTest, LaunchLeavesItsResultsInTheStore) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/launched");
  std::filesystem::create_directories(folder);
  const auto path = [](absl::string_view name) {
    return std::filesystem::absolute(std::string(name)).string();
  };
  ASSERT_OK_AND_ASSIGN(
      const auto launch,
      ProcessUnderTest::Start(
          {"/usr/bin/env", "-C", folder, path("deploy/launch/launch"),
           "--workers=1", "--ps=1",
           absl::StrCat("--job=", path("tests/faults/object_store_digits.job")),
           absl::StrCat("--run_dir=", kStore, "/launched"), "--set", "epochs=1",
           "--set", absl::StrCat("store=", kStore)},
          environment_));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launch->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 0) << launch->output();
  EXPECT_THAT(launch->output(),
              HasSubstr("the job is done; see s3://bucket/run/launched"));
  EXPECT_THAT(server_->Objects(), Contains(Key("run/launched/summary.json")));
  std::vector<std::string> logs;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".log") {
      logs.push_back(entry.path().filename().string());
    }
  }
  EXPECT_THAT(logs,
              UnorderedElementsAre("chief.log", "ps-0.log", "worker-0.log"));
}

// The run ends before the first step.
TEST_F(ObjectStoreTest, AWrongSecretEndsTheRunAtOnce) {
  environment_["AWS_SECRET_ACCESS_KEY"] = "aWrongSecretKey";
  StartAll();
  ExpectChiefEndsWith(2);
  EXPECT_THAT(
      cluster_->process(kChief).output(),
      AllOf(HasSubstr("s3://bucket/run"),
            HasSubstr("403 SignatureDoesNotMatch"),
            HasSubstr("check AWS_SECRET_ACCESS_KEY"),
            Not(HasSubstr("aWrongSecretKey")), Not(HasSubstr("Epoch 1/"))));
}

TEST_F(ObjectStoreTest, AKillDuringAnUploadLeavesTheCheckpointBefore) {
  absl::Notification is_uploading;
  absl::Notification is_killed;
  server_->set_script([&](const S3Server::Request& request) {
    const auto part = request.query.find("partNumber");
    if (absl::StrContains(request.key, "ckpt-2.data") &&
        part != request.query.end() && part->second == "2") {
      is_uploading.Notify();
      EXPECT_TRUE(is_killed.WaitForNotificationWithTimeout(kTestWaitMax));
    }
    return Action::kServe;
  });
  ASSERT_OK_AND_ASSIGN(
      const auto saver,
      ProcessUnderTest::Start({"tests/faults/saving_program", kStore},
                              environment_));
  ASSERT_OK(saver->AwaitLine("saved 1"));
  ASSERT_TRUE(
      is_uploading.WaitForNotificationWithTimeout(ProcessUnderTest::kPatience))
      << saver->output();
  saver->SendSignal(SIGKILL);
  ASSERT_OK(saver->AwaitEnd());
  is_killed.Notify();

  ASSERT_OK_AND_ASSIGN(const auto manager,
                       CheckpointManager::Create({.folder = kStore}));
  ASSERT_OK_AND_ASSIGN(const auto reader, manager->OpenLatest());
  EXPECT_EQ(reader->prefix(), absl::StrCat(kStore, "/ckpt-1"));
  ASSERT_OK_AND_ASSIGN(const Tensor weights, reader->Read("weights"));
  EXPECT_EQ(weights.flat<float>().back(), 1.0f);
  // A lifecycle rule of the bucket releases the space of the unfinished upload.
  EXPECT_EQ(server_->open_upload_count(), 1);
}

}  // namespace
}  // namespace muster
