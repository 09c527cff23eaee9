#include "common/io/checkpoint/checkpoint_manager.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/checkpoint_state.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;

// A model with two variables that must come from the same checkpoint.
auto WriteModel(int64_t step) {
  return [step](TensorBundleWriter* writer) {
    absl::Status status = writer->Add("step", Tensor::Scalar<int64_t>(step));
    if (!status.ok()) return status;
    return writer->Add("weights", Tensor::Full(DType::kFloat32, {100},
                                               static_cast<double>(step)));
  };
}

absl::StatusOr<int64_t> ReadModel(const TensorBundleReader& reader) {
  const absl::StatusOr<Tensor> step = reader.Read("step");
  if (!step.ok()) return step.status();
  const absl::StatusOr<Tensor> weights = reader.Read("weights");
  if (!weights.ok()) return weights.status();
  for (const float weight : weights->flat<float>()) {
    if (weight != step->scalar<int64_t>()) {
      return absl::InternalError("a mixed checkpoint");
    }
  }
  return step->scalar<int64_t>();
}

int IndexCount(const SimulatedDisk& disk) {
  const std::vector<std::string> paths = disk.Paths();
  return static_cast<int>(std::count_if(
      paths.begin(), paths.end(),
      [](const std::string& path) { return absl::EndsWith(path, ".index"); }));
}

class CheckpointManagerTest : public testing::Test {
 protected:
  std::unique_ptr<CheckpointManager> Manager(
      std::optional<int> count_max = 2,
      absl::Duration keep_one_every = absl::ZeroDuration()) {
    return ManagerOn(disk_.get(), count_max, keep_one_every);
  }
  std::unique_ptr<CheckpointManager> ManagerOn(
      Disk* disk, std::optional<int> count_max = 2,
      absl::Duration keep_one_every = absl::ZeroDuration()) {
    auto manager =
        CheckpointManager::Create({.folder = "runs/7",
                                   .checkpoint_count_max = count_max,
                                   .keep_one_every = keep_one_every,
                                   .disk = disk,
                                   .wall_time = [this] { return now_; }});
    EXPECT_OK(manager);
    return *std::move(manager);
  }
  // Returns the step of the checkpoint that a new process restores; -1 for
  // none.
  static absl::StatusOr<int64_t> Restore(CheckpointManager* manager) {
    int64_t step = -1;
    const auto restored = manager->RestoreOrInitialize(
        [&](const TensorBundleReader& reader) {
          const absl::StatusOr<int64_t> read = ReadModel(reader);
          if (read.ok()) step = *read;
          return read.status();
        },
        [] { return absl::OkStatus(); });
    if (!restored.ok()) return restored.status();
    EXPECT_EQ(restored->has_value(), step >= 0);
    return step;
  }

  std::unique_ptr<SimulatedDisk> disk_ = std::make_unique<SimulatedDisk>();
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(480000);
};

TEST_F(CheckpointManagerTest, KeepsTheNewestCheckpoints) {
  auto manager = Manager();
  EXPECT_EQ(manager->latest_checkpoint(), std::nullopt);
  for (int step = 1; step <= 4; ++step) {
    EXPECT_THAT(manager->Save(WriteModel(step)),
                IsOkAndHolds(absl::StrCat("runs/7/ckpt-", step)));
  }
  EXPECT_THAT(manager->checkpoints(),
              ElementsAre("runs/7/ckpt-3", "runs/7/ckpt-4"));
  EXPECT_THAT(
      disk_->Paths(),
      ElementsAre("runs/7/checkpoint", "runs/7/ckpt-3.data-00000-of-00001",
                  "runs/7/ckpt-3.index", "runs/7/ckpt-4.data-00000-of-00001",
                  "runs/7/ckpt-4.index"));
  manager = Manager();
  EXPECT_THAT(manager->checkpoints(),
              ElementsAre("runs/7/ckpt-3", "runs/7/ckpt-4"));
  EXPECT_THAT(LatestCheckpoint(disk_.get(), "runs/7"),
              IsOkAndHolds("runs/7/ckpt-4"));
  EXPECT_THAT(Restore(manager.get()), IsOkAndHolds(4));
  EXPECT_THAT(manager->Save(WriteModel(5)), IsOkAndHolds("runs/7/ckpt-5"));
}

TEST_F(CheckpointManagerTest, NumbersMayBeGiven) {
  auto manager = Manager(std::nullopt);
  ASSERT_OK(manager->Save(WriteModel(100), 100));
  EXPECT_THAT(manager->Save(WriteModel(101)), IsOkAndHolds("runs/7/ckpt-101"));
  EXPECT_THAT(manager->Save(WriteModel(50), 100),
              IsOkAndHolds("runs/7/ckpt-100"));
  EXPECT_THAT(manager->checkpoints(),
              ElementsAre("runs/7/ckpt-101", "runs/7/ckpt-100"));
  EXPECT_THAT(Restore(manager.get()), IsOkAndHolds(50));
  EXPECT_THAT(manager->Save(WriteModel(1), -1),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CheckpointManagerTest, KeepsOneCheckpointPerInterval) {
  auto manager = Manager(1, absl::Hours(2));
  for (int step = 1; step <= 8; ++step) {
    now_ += absl::Hours(1);
    ASSERT_OK(manager->Save(WriteModel(step)));
    manager = Manager(1, absl::Hours(2));
  }
  EXPECT_THAT(manager->checkpoints(), ElementsAre("runs/7/ckpt-8"));
  std::vector<std::string> kept;
  for (const std::string& path : disk_->Paths()) {
    if (path.ends_with(".index")) kept.push_back(path);
  }
  EXPECT_THAT(kept, ElementsAre("runs/7/ckpt-2.index", "runs/7/ckpt-4.index",
                                "runs/7/ckpt-6.index", "runs/7/ckpt-8.index"));
}

TEST_F(CheckpointManagerTest, SeveralWritersWriteOneCheckpoint) {
  auto manager = Manager();
  ASSERT_OK_AND_ASSIGN(const std::string prefix, manager->NextPrefix());
  for (int shard = 0; shard < 2; ++shard) {
    ASSERT_OK_AND_ASSIGN(const auto writer, TensorBundleWriter::Create(
                                                disk_.get(), prefix,
                                                {.index = shard, .count = 2}));
    ASSERT_OK(shard == 0 ? writer->Add("step", Tensor::Scalar<int64_t>(3))
                         : writer->Add("weights", Tensor::Full(DType::kFloat32,
                                                               {100}, 3)));
    ASSERT_OK(writer->Finish());
    EXPECT_THAT(Restore(manager.get()), IsOkAndHolds(-1));
  }
  ASSERT_OK(manager->Publish(prefix, 2));
  EXPECT_THAT(Restore(Manager().get()), IsOkAndHolds(3));
  ASSERT_OK_AND_ASSIGN(const std::string next, manager->NextPrefix());
  ASSERT_OK(TensorBundleWriter::Create(disk_.get(), next).value()->Finish());
  manager->Abandon(next, 1);
  EXPECT_THAT(disk_->Paths(), Not(Contains(HasSubstr("ckpt-2"))));
}

TEST_F(CheckpointManagerTest, ReportsADamagedCheckpointAndUsesThePreviousOne) {
  auto manager = Manager(3);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_OK(manager->Save(WriteModel(step)));
  }
  const std::string data = BundleDataPath("runs/7/ckpt-3", 0, 1);
  std::string damaged = disk_->Get(data);
  damaged[200] ^= 1;
  disk_->Set(data, damaged);
  testing::internal::CaptureStderr();
  EXPECT_THAT(Restore(manager.get()), IsOkAndHolds(2));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("runs/7/ckpt-3"), HasSubstr(data),
                             HasSubstr("offset 8, tensor weights")));
  ASSERT_OK(disk_->Remove("runs/7/ckpt-2.index"));
  EXPECT_THAT(Restore(manager.get()), IsOkAndHolds(1));
  ASSERT_OK(disk_->Remove(BundleDataPath("runs/7/ckpt-1", 0, 1)));
  EXPECT_THAT(
      Restore(manager.get()),
      StatusIs(absl::StatusCode::kDataLoss,
               testing::AllOf(HasSubstr("ckpt-1"), HasSubstr("ckpt-2.index"),
                              HasSubstr("ckpt-3"))));
}

// Each process is killed between publishing and listing.
TEST_F(CheckpointManagerTest, KilledProcessesLeaveNoCheckpointsBehind) {
  for (int step = 1; step <= 10; ++step) {
    auto manager = Manager();
    const std::string list = disk_->Get("runs/7/checkpoint");
    ASSERT_OK(manager->Save(WriteModel(step)));
    if (step > 1) disk_->Set("runs/7/checkpoint", list);
    EXPECT_THAT(Restore(Manager().get()), IsOkAndHolds(step));
  }
  EXPECT_EQ(IndexCount(*disk_), 2);
}

TEST_F(CheckpointManagerTest, GoesBackToTheCheckpointThatAnEditedListNames) {
  auto manager = Manager(3);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_OK(manager->Save(WriteModel(step)));
  }
  disk_->Set("runs/7/checkpoint", R"(
      model_checkpoint_path: "ckpt-2"
      all_model_checkpoint_paths: "ckpt-1"
      all_model_checkpoint_paths: "ckpt-2"
      all_model_checkpoint_paths: "ckpt-3")");
  EXPECT_THAT(Restore(Manager(3).get()), IsOkAndHolds(2));
}

// A disk on which some paths cannot be opened.
class UnreadablePaths final : public Disk {
 public:
  UnreadablePaths(Disk* disk, std::string path, absl::Status error)
      : disk_(disk), path_(std::move(path)), error_(std::move(error)) {}

  bool CreatesAtomically(absl::string_view path) const override {
    return disk_->CreatesAtomically(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override {
    return disk_->Create(path);
  }
  absl::Status CreateExclusive(absl::string_view path,
                               absl::string_view content) override {
    return disk_->CreateExclusive(path, content);
  }
  absl::StatusOr<std::unique_ptr<AppendableFile>> AppendFile(
      absl::string_view path) override {
    return disk_->AppendFile(path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) override {
    if (path == path_) return error_;
    return disk_->Open(path);
  }
  absl::Status Rename(absl::string_view from, absl::string_view to) override {
    return disk_->Rename(from, to);
  }
  absl::Status Remove(absl::string_view path) override {
    return disk_->Remove(path);
  }
  absl::Status MakeFolder(absl::string_view folder) override {
    return disk_->MakeFolder(folder);
  }
  absl::Status SyncFolder(absl::string_view folder) override {
    return disk_->SyncFolder(folder);
  }
  absl::StatusOr<std::vector<std::string>> List(
      absl::string_view folder) override {
    return disk_->List(folder);
  }

 private:
  Disk* const disk_;
  const std::string path_;
  const absl::Status error_;
};

TEST_F(CheckpointManagerTest, UnreadableCheckpointsAreSkipped) {
  auto manager = Manager(3);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_OK(manager->Save(WriteModel(step)));
  }
  const absl::Status io_error = absl::ErrnoToStatus(EIO, "cannot read");
  const absl::Status no_file = absl::InvalidArgumentError("is a folder");
  for (const absl::Status& error : {io_error, no_file}) {
    for (const std::string& path : {std::string("runs/7/ckpt-3.index"),
                                    BundleDataPath("runs/7/ckpt-3", 0, 1)}) {
      UnreadablePaths disk(disk_.get(), path, error);
      EXPECT_THAT(Restore(ManagerOn(&disk, 3).get()), IsOkAndHolds(2)) << path;
    }
    UnreadablePaths disk(disk_.get(), "runs/7/checkpoint", error);
    EXPECT_THAT(Restore(ManagerOn(&disk, 3).get()), IsOkAndHolds(3));
  }
}

// A fallback would lose the work of the newest checkpoint.
TEST_F(CheckpointManagerTest, UnreachableCheckpointsAreNotSkipped) {
  auto manager = Manager(3);
  for (int step = 1; step <= 2; ++step) {
    ASSERT_OK(manager->Save(WriteModel(step)));
  }
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kPermissionDenied,
        absl::StatusCode::kResourceExhausted}) {
    UnreadablePaths disk(disk_.get(), "runs/7/ckpt-2.index",
                         absl::Status(code, "not now"));
    EXPECT_THAT(Restore(ManagerOn(&disk, 3).get()), StatusIs(code));
  }
}

TEST(CheckpointManagerOnDiskTest, EntriesThatAreNotFilesAreSkipped) {
  const std::string folder = absl::StrCat(std::getenv("TEST_TMPDIR"), "/other");
  std::filesystem::create_directories(folder);
  const auto create = [&] {
    return CheckpointManager::Create({.folder = folder}).value();
  };
  const auto manager = create();
  for (int step = 1; step <= 4; ++step) {
    ASSERT_OK(manager->Save(WriteModel(step)));
  }
  const std::string prefix = folder + "/ckpt-";
  std::filesystem::remove(prefix + "4.index");
  std::filesystem::create_directory(prefix + "4.index");
  std::filesystem::remove(prefix + "3.index");
  ASSERT_EQ(mkfifo((prefix + "3.index").c_str(), 0600), 0);
  const std::string data = BundleDataPath(prefix + "2", 0, 1);
  std::filesystem::remove(data);
  ASSERT_EQ(mkfifo(data.c_str(), 0600), 0);
  const auto opened = create()->OpenLatest();
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->prefix(), prefix + "1");
}

TEST_F(CheckpointManagerTest, ListsTheFolderIfTheStateFileIsDamaged) {
  auto manager = Manager(2);
  for (int step = 1; step <= 12; ++step) {
    ASSERT_OK(manager->Save(WriteModel(step)));
  }
  for (const std::string content :
       {"", "garbage", "model_checkpoint_path: 7"}) {
    disk_->Set("runs/7/checkpoint", content);
    testing::internal::CaptureStderr();
    manager = Manager(2);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("runs/7/checkpoint"));
    EXPECT_THAT(manager->checkpoints(),
                ElementsAre("runs/7/ckpt-11", "runs/7/ckpt-12"));
    EXPECT_THAT(Restore(manager.get()), IsOkAndHolds(12));
  }
  ASSERT_OK(disk_->Remove("runs/7/checkpoint"));
  EXPECT_THAT(Restore(Manager(2).get()), IsOkAndHolds(12));
}

TEST_F(CheckpointManagerTest, FullDiskKeepsExistingCheckpoints) {
  auto manager = Manager();
  ASSERT_OK(manager->Save(WriteModel(1)));
  const std::vector<std::string> before = disk_->Paths();
  int64_t used = 0;
  for (const std::string& path : before) used += disk_->Get(path).size();
  bool has_failed_late = false;
  for (int64_t room = 0;; ++room) {
    disk_->set_capacity_bytes(used + room);
    const auto saved = manager->Save(WriteModel(2));
    if (saved.ok()) break;
    EXPECT_THAT(saved, StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("no space left on device")));
    has_failed_late |=
        saved.status().message().find("checkpoint.tmp") != std::string::npos;
    ASSERT_EQ(disk_->Paths(), before) << room;
    ASSERT_THAT(Restore(Manager().get()), IsOkAndHolds(1));
  }
  EXPECT_TRUE(has_failed_late);
  EXPECT_THAT(Restore(Manager().get()), IsOkAndHolds(2));
}

TEST_F(CheckpointManagerTest, EveryFailedOperationLeavesTheOldOrNewCheckpoint) {
  for (int64_t number = 1;; ++number) {
    disk_ = std::make_unique<SimulatedDisk>();
    auto manager = Manager();
    for (int step = 1; step <= 2; ++step) {
      ASSERT_OK(manager->Save(WriteModel(step)));
    }
    const int64_t begin = disk_->operation_count();
    disk_->FailOperation(begin + number, absl::InternalError("I/O error"));
    const auto saved = manager->Save(WriteModel(3));
    const bool has_failed = disk_->operation_count() < begin + number;
    if (has_failed) {
      ASSERT_OK(saved);
      EXPECT_GT(number, 15);
      break;
    }
    const auto found = Restore(Manager().get());
    ASSERT_OK(found);
    EXPECT_TRUE(saved.ok() ? *found == 3 : *found == 2 || *found == 3)
        << number << ": " << *found;
    // The next save succeeds and leaves no other files.
    ASSERT_OK(manager->Save(WriteModel(4))) << number;
    ASSERT_THAT(Restore(Manager().get()), IsOkAndHolds(4));
    for (const std::string& path : disk_->Paths()) {
      EXPECT_THAT(path, Not(HasSubstr(".part-"))) << number;
      EXPECT_THAT(path, Not(HasSubstr(".tmp"))) << number;
    }
  }
}

class CrashTest : public CheckpointManagerTest,
                  public testing::WithParamInterface<int> {
 protected:
  // Writes a checkpoint of GetParam() shards. Several shards have one writer
  // each, as on the servers of a job.
  absl::Status Save(CheckpointManager* manager, int64_t step) {
    const int shard_count = GetParam();
    if (shard_count == 1) return manager->Save(WriteModel(step)).status();
    ASSIGN_OR_RETURN(const std::string prefix, manager->NextPrefix());
    for (int shard = 0; shard < shard_count; ++shard) {
      ASSIGN_OR_RETURN(
          const auto writer,
          TensorBundleWriter::Create(disk_.get(), prefix,
                                     {.index = shard, .count = shard_count}));
      if (shard == 0) {
        RETURN_IF_ERROR(writer->Add("step", Tensor::Scalar<int64_t>(step)));
      } else if (shard == 1) {
        RETURN_IF_ERROR(writer->Add(
            "weights",
            Tensor::Full(DType::kFloat32, {100}, static_cast<double>(step))));
      }
      RETURN_IF_ERROR(writer->Finish());
    }
    return manager->Publish(prefix, shard_count);
  }
};

TEST_P(CrashTest, AtAnyPointLeavesTheOldOrNewCheckpoint) {
  using Crash = SimulatedDisk::Crash;
  int cut_count = 0;
  int old_count = 0;
  for (int64_t number = 1;; ++number, ++cut_count) {
    disk_ = std::make_unique<SimulatedDisk>();
    auto manager = Manager();
    for (int step = 1; step <= 2; ++step) {
      ASSERT_OK(Save(manager.get(), step));
    }
    const int64_t begin = disk_->operation_count();
    disk_->StopAtOperation(begin + number);
    const absl::Status saved = Save(manager.get(), 3);
    const bool has_stopped = disk_->operation_count() >= begin + number;
    for (int seed = 0; seed < 52; ++seed) {
      const auto found_disk =
          disk_->After(seed == 0   ? Crash::kProcessKilled
                       : seed == 1 ? Crash::kUnsyncedLost
                                   : Crash::kUnsyncedAtRandom,
                       seed);
      ASSERT_OK(ReadCheckpointState(found_disk.get(), "runs/7"));
      const auto next_manager = ManagerOn(found_disk.get());
      // `checkpoint` must list only complete checkpoints.
      const auto opened = next_manager->OpenLatest();
      ASSERT_OK(opened) << number << " " << seed;
      EXPECT_EQ((*opened)->prefix(), next_manager->latest_checkpoint());
      const auto found = ReadModel(**opened);
      ASSERT_OK(found) << number << " " << seed;
      EXPECT_TRUE(saved.ok() ? *found == 3 : *found == 2 || *found == 3);
      old_count += *found == 2;
      // The next save succeeds.
      ASSERT_OK(next_manager->Save(WriteModel(5)));
      ASSERT_THAT(Restore(ManagerOn(found_disk.get()).get()), IsOkAndHolds(5));
      // No checkpoint is left behind.
      EXPECT_EQ(IndexCount(*found_disk), 2) << number << " " << seed;
    }
    if (!has_stopped) break;
  }
  EXPECT_GT(cut_count, 15);
  EXPECT_GT(old_count, 100);
}

INSTANTIATE_TEST_SUITE_P(ShardCounts, CrashTest, testing::Values(1, 3));

TEST_F(CheckpointManagerTest, CrashDuringReplacementLeavesOneCheckpoint) {
  for (int64_t number = 1;; ++number) {
    disk_ = std::make_unique<SimulatedDisk>();
    auto manager = Manager();
    ASSERT_OK(manager->Save(WriteModel(1), 1));
    const int64_t begin = disk_->operation_count();
    disk_->StopAtOperation(begin + number);
    const auto saved = manager->Save(WriteModel(2), 1);
    for (int seed = 0; seed < 50; ++seed) {
      const auto found_disk =
          disk_->After(seed == 0 ? SimulatedDisk::Crash::kUnsyncedLost
                                 : SimulatedDisk::Crash::kUnsyncedAtRandom,
                       seed);
      const auto found = Restore(ManagerOn(found_disk.get()).get());
      ASSERT_OK(found) << number << " " << seed;
      EXPECT_TRUE(saved.ok() ? *found == 2 : *found == 1 || *found == 2);
    }
    if (disk_->operation_count() < begin + number) break;
  }
}

TEST_F(CheckpointManagerTest, ValidatesOptions) {
  const auto create = [&](CheckpointManager::Options options) {
    options.disk = disk_.get();
    return CheckpointManager::Create(std::move(options));
  };
  constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(create({.folder = ""}), StatusIs(kInvalidArgument));
  EXPECT_THAT(create({.folder = "f", .checkpoint_name = "a/b"}),
              StatusIs(kInvalidArgument, HasSubstr("a/b")));
  EXPECT_THAT(create({.folder = "f", .checkpoint_count_max = 0}),
              StatusIs(kInvalidArgument, HasSubstr("checkpoint_count_max")));
  EXPECT_THAT(create({.folder = "f", .keep_one_every = -absl::Seconds(1)}),
              StatusIs(kInvalidArgument));
  EXPECT_OK(create({.folder = "f"}));
}

TEST_F(CheckpointManagerTest, ReturnsErrorsOfCallbacks) {
  auto manager = Manager();
  EXPECT_THAT(manager->Save([](TensorBundleWriter*) {
    return absl::AbortedError("no more");
  }),
              StatusIs(absl::StatusCode::kAborted, "no more"));
  EXPECT_THAT(disk_->Paths(), IsEmpty());
  ASSERT_OK(manager->Save(WriteModel(1)));
  EXPECT_THAT(manager->RestoreOrInitialize(
                  [](const TensorBundleReader&) {
                    return absl::AbortedError("not me");
                  },
                  [] { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kAborted, "not me"));
}

}  // namespace
}  // namespace muster
