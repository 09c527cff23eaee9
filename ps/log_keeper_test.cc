#include "ps/log_keeper.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "ps/parameter_shard.h"
#include "ps/testing/shard_call.h"
#include "ps/testing/shard_state.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Several stripes.
constexpr int64_t kRows = 1500;
constexpr int64_t kColumns = 64;
constexpr char kFolder[] = "/run/server_log/ps-0";

Tensor RandomRows(int64_t count, RandomStream* random) {
  Tensor rows(DType::kFloat32, Shape({count, kColumns}));
  for (float& value : rows.mutable_flat<float>()) {
    value = static_cast<float>(random->Below(2001)) / 1000 - 1;
  }
  return rows;
}

// A server process with a log: a shard and its keeper.
struct Process {
  Process(Disk* disk, uint64_t incarnation, LogKeeper::Options options = {})
      : shard({.thread_count = 2}) {
    options.self = {"ps", 0, incarnation};
    options.folder = kFolder;
    if (options.boot_id.empty()) options.boot_id = "boot";
    options.disk = disk;
    options.locks_folder = false;
    keeper = std::make_unique<LogKeeper>(options, &shard);
  }

  // Ends the process as SIGKILL does. Its shard can still be read.
  void Kill() { keeper = nullptr; }

  ParameterShard shard;
  std::unique_ptr<LogKeeper> keeper;
};

// Snapshots are taken after every few pushes.
LogKeeper::Options WithSnapshots() {
  LogKeeper::Options options;
  options.size_bytes_max = 1;
  options.snapshot_bytes_min = 100 << 10;
  return options;
}

proto::Optimizer Parse(const std::string& text) {
  proto::Optimizer optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &optimizer));
  return optimizer;
}

// Creates the variables 0 ("dense"), 1 ("table") and 2 ("count", an integer).
void CreateVariables(ParameterShard& shard) {
  proto::ShardSpec dense =
      Spec("dense", DType::kFloat32, Shape({kRows, kColumns}), 0.5);
  dense.mutable_variable()->mutable_constraint()->mutable_non_neg();
  ASSERT_OK(shard.Create(dense).status());
  ASSERT_OK(
      shard
          .Create(Spec("table", DType::kFloat32, Shape({kRows, kColumns}), 0.5))
          .status());
  ASSERT_OK(shard.Create(Spec("count", DType::kInt64, Shape())).status());
}

// Sends pushes like those of steps, with updates whose order matters.
class Pusher {
 public:
  explicit Pusher(uint64_t seed) : random_(FoldIn(seed, "pushes")) {}

  Call Next(uint64_t step_id) {
    Call call;
    call.Step(step_id);
    call.request.set_low_water_mark(step_id > 8 ? step_id - 8 : 0);
    const uint64_t choice = random_.Below(4);
    if (choice != 1) {
      call.Update(0, proto::APPLY_GRADIENT, RandomRows(kRows, &random_));
    }
    call.Sparse(1, proto::APPLY_SPARSE_GRADIENT, RowNumbers(30),
                RandomRows(30, &random_));
    if (choice == 2) {
      call.Sparse(1, proto::SCATTER_UPDATE, RowNumbers(5),
                  RandomRows(5, &random_));
    }
    if (choice == 3) {
      call.Update(2, proto::ASSIGN_ADD, Tensor::Scalar<int64_t>(7));
    }
    call.Pull(2);
    return call;
  }

 private:
  std::vector<int64_t> RowNumbers(int count) {
    std::vector<int64_t> rows;
    for (int i = 0; i < count; ++i) {
      rows.push_back(static_cast<int64_t>(random_.Below(kRows)));
    }
    return rows;
  }

  RandomStream random_;
};

void ExpectEqual(ParameterShard& restored, ParameterShard& original) {
  const std::vector<std::string> expected = StateOf(original);
  const std::vector<std::string> actual = StateOf(restored);
  ASSERT_THAT(actual, SizeIs(expected.size()));
  for (size_t i = 0; i < actual.size(); ++i) {
    // Arrays are too long to be printed.
    ASSERT_TRUE(actual[i] == expected[i])
        << "part " << i << " is " << actual[i].substr(0, 300) << "; expected "
        << expected[i].substr(0, 300);
  }
}

bool HasSnapshot(const SimulatedDisk& disk) {
  for (const std::string& path : disk.Paths()) {
    if (absl::StrContains(path, "/snapshot-") &&
        !absl::EndsWith(path, ".unfinished")) {
      return true;
    }
  }
  return false;
}

class LogKeeperTest : public testing::TestWithParam<const char*> {
 protected:
  // Two workers push at the same time; other changes happen in between.
  void Train(ParameterShard& shard, uint64_t first_step) {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::thread> workers;
      for (uint64_t worker = 0; worker < 2; ++worker) {
        workers.emplace_back([&shard, worker, round, first_step] {
          const uint64_t begin = first_step + 20 * round + 10 * worker;
          Pusher pusher(begin);
          for (uint64_t i = 0; i < 5; ++i) {
            ASSERT_OK(pusher.Next(begin + i).Run(shard));
          }
        });
      }
      for (std::thread& worker : workers) worker.join();
      if (round == 0) {
        ASSERT_OK(shard.AssignAverages());
      }
      if (round == 1) {
        ASSERT_OK(shard.Freeze(4711).status());
      }
    }
  }
};

TEST_P(LogKeeperTest, AKilledProcessIsFollowedByOneWithTheSameBits) {
  for (const bool takes_snapshots : {false, true}) {
    const LogKeeper::Options options =
        takes_snapshots ? WithSnapshots() : LogKeeper::Options();
    auto disk = std::make_unique<SimulatedDisk>();
    auto process = std::make_unique<Process>(disk.get(), 1, options);
    EXPECT_FALSE(process->keeper->restored().has_value());
    ASSERT_OK(process->keeper->NoteJob([] {
      proto::ServerLogJob job;
      job.set_job_id("job");
      job.set_coordinator_epoch(3);
      return job;
    }()));
    CreateVariables(process->shard);
    ASSERT_OK(process->shard.SetOptimizer(Parse(GetParam())));
    // Each process restores what the ones before have done.
    for (uint64_t life = 1; life <= 3; ++life) {
      Train(process->shard, 1000 * life);
      if (takes_snapshots) {
        ASSERT_TRUE(AwaitTrue([&] { return HasSnapshot(*disk); }));
      }
      const int64_t number = process->keeper->log_number();
      process->Kill();
      disk = disk->After(SimulatedDisk::Crash::kProcessKilled);
      auto next = std::make_unique<Process>(disk.get(), life + 1, options);
      ASSERT_TRUE(next->keeper->restored().has_value())
          << next->keeper->why_not_restored();
      if (takes_snapshots) {
        // A snapshot that began in the meantime is a record of its own.
        EXPECT_GE(next->keeper->restored()->state.log_number(), number);
      } else {
        EXPECT_EQ(next->keeper->restored()->state.log_number(), number);
      }
      EXPECT_EQ(next->keeper->restored()->job.job_id(), "job");
      EXPECT_EQ(next->keeper->restored()->job.coordinator_epoch(), 3u);
      EXPECT_EQ(next->keeper->state_id(), 1u);
      ExpectEqual(next->shard, process->shard);
      process = std::move(next);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, LogKeeperTest,
    testing::Values(
        "adam { learning_rate: 0.1 }",
        "sgd { learning_rate: 0.1 momentum: 0.9 }",
        "sgd { learning_rate: 0.1 } use_ema: true ema_momentum: 0.9",
        "adam { learning_rate: 0.1 } gradient_accumulation_steps: 3",
        "adam { learning_rate: 0.1 } clipvalue: 0.5",
        "lamb { learning_rate: 0.1 }",
        // A slot begins as a copy of the variable.
        "schedule_free_adamw { learning_rate: 0.1 }"));

class ServerLogTest : public testing::Test {
 protected:
  void Begin(LogKeeper::Options options = {}) {
    process_ = std::make_unique<Process>(disk_.get(), 1, options);
    CreateVariables(process_->shard);
    ASSERT_OK(process_->shard.SetOptimizer(SgdOf(1)));
  }
  absl::Status Push(uint64_t step_id) {
    return Call()
        .Step(step_id)
        .Update(2, proto::ASSIGN_ADD, Tensor::Scalar<int64_t>(1))
        .Run(process_->shard);
  }
  void KillAndRestart(LogKeeper::Options options = {}) {
    process_->Kill();
    disk_ = disk_->After(SimulatedDisk::Crash::kProcessKilled);
    process_ = std::make_unique<Process>(disk_.get(), 2, options);
  }
  int64_t Count() {
    Call call;
    EXPECT_OK(call.Pull(2).Run(process_->shard));
    return call.answers.at(0).scalar<int64_t>();
  }
  std::string OnlySegment() {
    std::string found;
    for (const std::string& path : disk_->Paths()) {
      if (absl::StrContains(path, "/segment-")) found = path;
    }
    return found;
  }
  void ExpectNotRestored(const std::string& reason) {
    EXPECT_FALSE(process_->keeper->restored().has_value());
    EXPECT_THAT(process_->keeper->why_not_restored(), HasSubstr(reason));
    EXPECT_EQ(process_->shard.activity().variable_count, 0);
    // It keeps a log of its own.
    EXPECT_EQ(process_->keeper->state_id(), 2u);
    CreateVariables(process_->shard);
    ASSERT_OK(Push(1));
    KillAndRestart();
    EXPECT_TRUE(process_->keeper->restored().has_value());
    EXPECT_EQ(Count(), 1);
  }

  std::unique_ptr<SimulatedDisk> disk_ = std::make_unique<SimulatedDisk>();
  std::unique_ptr<Process> process_;
};

TEST_F(ServerLogTest, PushesThatWereAppliedAreNotAppliedAgain) {
  Begin();
  for (uint64_t step = 1; step <= 10; ++step) ASSERT_OK(Push(step));
  KillAndRestart();
  for (uint64_t step = 5; step <= 15; ++step) ASSERT_OK(Push(step));
  EXPECT_EQ(Count(), 15);
}

TEST_F(ServerLogTest, TheLowWaterMarkIsRestored) {
  Begin();
  ASSERT_OK(Push(9));
  Call pull;
  pull.request.set_low_water_mark(8);
  ASSERT_OK(pull.Pull(2).Run(process_->shard));
  KillAndRestart();
  // It comes from a worker that was stopped.
  ASSERT_OK(Push(7));
  EXPECT_EQ(Count(), 1);
}

TEST_F(ServerLogTest, APushWhoseRecordIsTornHasNotHappened) {
  Begin();
  ASSERT_OK(Push(1));
  ASSERT_OK(Push(2));
  process_->Kill();
  const std::string path = OnlySegment();
  const std::string content = disk_->Get(path);
  for (const size_t cut : {1, 5, 20, 30}) {
    disk_->Set(path, content.substr(0, content.size() - cut));
    Process restored(disk_.get(), 2);
    ASSERT_TRUE(restored.keeper->restored().has_value())
        << restored.keeper->why_not_restored();
    EXPECT_EQ(restored.shard.activity().update_count, 1) << cut;
    restored.Kill();
    disk_ = std::make_unique<SimulatedDisk>();
  }
}

TEST_F(ServerLogTest, ADamagedRecordIsRefused) {
  Begin();
  for (uint64_t step = 1; step <= 3; ++step) ASSERT_OK(Push(step));
  const std::string path = OnlySegment();
  std::string content = disk_->Get(path);
  content[content.size() / 2] ^= 1;
  disk_->Set(path, content);
  KillAndRestart();
  ExpectNotRestored("is damaged at byte");
}

TEST_F(ServerLogTest, TheLogOfAnotherBootIsRefused) {
  Begin();
  ASSERT_OK(Push(1));
  LogKeeper::Options options;
  options.boot_id = "later";
  KillAndRestart(options);
  EXPECT_THAT(process_->keeper->why_not_restored(),
              HasSubstr("was written before this machine started"));
}

TEST_F(ServerLogTest, AMissingSegmentIsNoticed) {
  Begin();
  ASSERT_OK(Push(1));
  KillAndRestart();
  ASSERT_OK(Push(2));
  ASSERT_OK(disk_->Remove(absl::StrCat(kFolder, "/segment-000001")));
  KillAndRestart();
  ExpectNotRestored("records are missing");
}

TEST_F(ServerLogTest, AFullDiskEndsTheLogAndNotTheTraining) {
  Begin();
  ASSERT_OK(Push(1));
  // A part of the next record fits.
  disk_->set_capacity_bytes(
      static_cast<int64_t>(disk_->Get(OnlySegment()).size()) + 20);
  ASSERT_OK(Push(2));
  EXPECT_EQ(process_->keeper->log_number(), 0);
  EXPECT_EQ(Count(), 2);
  disk_->set_capacity_bytes(1 << 30);
  KillAndRestart();
  EXPECT_FALSE(process_->keeper->restored().has_value());
  EXPECT_EQ(process_->keeper->why_not_restored(), "");
}

TEST_F(ServerLogTest, ARestoredVariableIsInTheNextSnapshot) {
  Begin();
  ASSERT_OK(Push(1));
  ASSERT_OK(process_->shard
                .Create([] {
                  proto::CreateRequest request;
                  *request.mutable_spec() =
                      Spec("count", DType::kInt64, Shape());
                  request.set_starts_over(true);
                  return request;
                }())
                .status());
  ASSERT_OK(Push(2));
  KillAndRestart();
  EXPECT_EQ(Count(), 1);
}

TEST_F(ServerLogTest, TooManyUpdatesEndTheLogAndNotTheTraining) {
  SimulatedClock clock;
  LogKeeper::Options options;
  options.bytes_per_second_max = 1000;
  options.clock = &clock;
  Begin(options);
  uint64_t step = 0;
  // A push of a row records more than 256 bytes.
  const auto push = [&](int pushes_per_second) {
    for (int i = 0; i < 12 * pushes_per_second; ++i) {
      ASSERT_OK(
          Call()
              .Step(++step)
              .Sparse(1, proto::SCATTER_ADD, {0},
                      Tensor::Full(DType::kFloat32, Shape({1, kColumns}), 1))
              .Run(process_->shard));
      clock.Advance(absl::Seconds(1) / pushes_per_second);
    }
  };
  push(1);
  EXPECT_GT(process_->keeper->log_number(), 0);
  push(8);
  EXPECT_EQ(process_->keeper->log_number(), 0);
  KillAndRestart(options);
  EXPECT_FALSE(process_->keeper->restored().has_value());
}

// Whatever operation of the disk is the last one: a process that is killed
// there is followed by one with all pushes that were acknowledged.
TEST_F(ServerLogTest, NothingAcknowledgedIsLostAtAnyOperation) {
  constexpr int kPushes = 12;
  int restored_count = 0;
  for (int64_t last = 4; last < 80; ++last) {
    disk_ = std::make_unique<SimulatedDisk>();
    disk_->StopAtOperation(last);
    process_ = std::make_unique<Process>(disk_.get(), 1, WithSnapshots());
    if (process_->keeper->state_id() == 0) continue;
    int acknowledged = 0;
    const auto created = process_->shard.Create(
        Spec("table", DType::kFloat32, Shape({kRows, kColumns}), 0.5));
    if (created.ok()) {
      for (; acknowledged < kPushes; ++acknowledged) {
        Call call;
        call.Step(acknowledged + 1)
            .Update(*created, proto::ASSIGN_ADD,
                    Tensor::Full(DType::kFloat32, Shape({kRows, kColumns}), 1));
        if (!call.Run(process_->shard).ok()) break;
      }
    }
    process_->Kill();
    const auto after = disk_->After(SimulatedDisk::Crash::kProcessKilled);
    Process next(after.get(), 2);
    if (acknowledged == 0) continue;
    ASSERT_TRUE(next.keeper->restored().has_value())
        << "operation " << last << ": " << next.keeper->why_not_restored();
    ++restored_count;
    ASSERT_EQ(next.shard.activity().update_count, acknowledged);
    ExpectEqual(next.shard, process_->shard);
  }
  EXPECT_GT(restored_count, 20);
}

// An operation fails, and the process goes on.
TEST_F(ServerLogTest, AFailedOperationLosesNothingThatWasAcknowledged) {
  for (int64_t failed = 4; failed < 40; ++failed) {
    disk_ = std::make_unique<SimulatedDisk>();
    disk_->FailOperation(failed, absl::UnavailableError("it failed"));
    process_ = std::make_unique<Process>(disk_.get(), 1, WithSnapshots());
    const auto created = process_->shard.Create(
        Spec("table", DType::kFloat32, Shape({kRows, kColumns}), 0.5));
    ASSERT_OK(created.status());
    for (int i = 0; i < 6; ++i) {
      ASSERT_OK(Call()
                    .Step(i + 1)
                    .Update(*created, proto::ASSIGN_ADD,
                            Tensor::Full(DType::kFloat32,
                                         Shape({kRows, kColumns}), 1))
                    .Run(process_->shard));
    }
    const bool is_kept = process_->keeper->log_number() > 0;
    process_->Kill();
    const auto after = disk_->After(SimulatedDisk::Crash::kProcessKilled);
    Process next(after.get(), 2);
    ASSERT_EQ(next.keeper->restored().has_value(), is_kept)
        << "operation " << failed << ": " << next.keeper->why_not_restored();
    if (is_kept) ExpectEqual(next.shard, process_->shard);
  }
}

}  // namespace
}  // namespace muster
