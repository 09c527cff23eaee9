#include "coordinator/journal/coordinator_journal.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/storage/testing/s3_server.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "coordinator/journal/journal_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kFolder[] = "run/journal";

std::unique_ptr<CoordinatorJournal> Open(Disk* disk,
                                         int64_t file_bytes_max = 1 << 20) {
  auto journal = CoordinatorJournal::Open({.folder = kFolder,
                                           .opened_by = "process 1",
                                           .file_bytes_max = file_bytes_max,
                                           .disk = disk});
  EXPECT_OK(journal);
  return *std::move(journal);
}

proto::JournalRecord Job() {
  proto::JournalRecord state;
  state.mutable_job()->set_job_id("job");
  return state;
}

proto::JournalRecord Step(int64_t step) {
  proto::JournalRecord change;
  change.mutable_training()->mutable_state()->set_step_in_epoch(step);
  return change;
}

int64_t StepOf(const CoordinatorJournal& journal) {
  const auto state = journal.ReadPredecessor();
  EXPECT_OK(state);
  return state.ok() && state->has_value()
             ? (*state)->training().state().step_in_epoch()
             : -1;
}

TEST(CoordinatorJournalTest, CountsEpochs) {
  SimulatedDisk disk;
  EXPECT_EQ(Open(&disk)->epoch(), 1u);
  EXPECT_EQ(Open(&disk)->epoch(), 2u);
  EXPECT_THAT(disk.Paths(), ElementsAre("run/journal/epoch-000001.000000",
                                        "run/journal/epoch-000002.000000"));
}

TEST(CoordinatorJournalTest, ASuccessorReadsWhatWasWritten) {
  SimulatedDisk disk;
  const auto first = Open(&disk);
  ASSERT_OK_AND_ASSIGN(const auto nothing, first->ReadPredecessor());
  EXPECT_FALSE(nothing.has_value());
  ASSERT_OK(first->Begin(Job()));
  ASSERT_OK(first->Write(Step(5)));
  const auto second = Open(&disk);
  EXPECT_EQ(StepOf(*second), 5);
  // The first coordinator may still run.
  ASSERT_OK(first->Write(Step(6)));
  EXPECT_EQ(StepOf(*second), 6);
  ASSERT_OK(second->Begin(Job()));
  EXPECT_THAT(disk.Paths(), ElementsAre("run/journal/epoch-000002.000000"));
}

TEST(CoordinatorJournalTest, SkipsACoordinatorThatEndedAtItsStart) {
  SimulatedDisk disk;
  const auto first = Open(&disk);
  ASSERT_OK(first->Begin(Job()));
  ASSERT_OK(first->Write(Step(5)));
  Open(&disk);
  EXPECT_EQ(StepOf(*Open(&disk)), 5);
}

TEST(CoordinatorJournalTest, WritesInTheBackground) {
  SimulatedDisk disk;
  const auto journal = Open(&disk);
  ASSERT_OK(journal->Begin(Job()));
  absl::Notification is_durable;
  journal->WriteLater(Step(7), [&] { is_durable.Notify(); });
  ASSERT_TRUE(is_durable.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_EQ(StepOf(*Open(&disk)), 7);
}

TEST(CoordinatorJournalTest, AnEarlierChangeIsNotWrittenAfterALaterOne) {
  SimulatedDisk disk;
  const auto journal = Open(&disk);
  ASSERT_OK(journal->Begin(Job()));
  for (int64_t step = 0; step < 200; step += 2) {
    journal->WriteLater(Step(step), [] {});
    ASSERT_OK(journal->Write(Step(step + 1)));
    ASSERT_EQ(StepOf(*Open(&disk)), step + 1);
  }
}

TEST(CoordinatorJournalTest, ContinuesAFullFileInAnother) {
  SimulatedDisk disk;
  const auto journal = Open(&disk, /*file_bytes_max=*/200);
  ASSERT_OK(journal->Begin(Job()));
  for (int64_t step = 1; step <= 50; ++step) {
    ASSERT_OK(journal->Write(Step(step)));
    ASSERT_EQ(disk.Paths().size(), 1u);
  }
  const auto successor = Open(&disk);
  EXPECT_EQ(StepOf(*successor), 50);
  ASSERT_OK_AND_ASSIGN(const auto state, successor->ReadPredecessor());
  EXPECT_EQ(state->job().job_id(), "job");
}

TEST(CoordinatorJournalTest, AStateLargerThanAFileIsNotWrittenWithEachRecord) {
  SimulatedDisk disk;
  const auto journal = Open(&disk, /*file_bytes_max=*/100);
  proto::JournalRecord state = Job();
  state.mutable_job()->set_job_id(std::string(10000, 'j'));
  ASSERT_OK(journal->Begin(state));
  const std::vector<std::string> files = disk.Paths();
  for (int64_t step = 1; step <= 50; ++step) {
    ASSERT_OK(journal->Write(Step(step)));
  }
  EXPECT_EQ(disk.Paths(), files);
  EXPECT_EQ(StepOf(*Open(&disk)), 50);
}

// After a crash at any operation, a successor finds each record for which
// Write() had returned, and at most the next one.
TEST(CoordinatorJournalTest, KeepsWhatWasDurableAfterACrash) {
  for (int64_t crash = 1;; ++crash) {
    SimulatedDisk disk;
    disk.StopAtOperation(crash);
    int64_t durable_step = -1;
    bool has_ended = false;
    auto journal = CoordinatorJournal::Open({.folder = kFolder,
                                             .opened_by = "process 1",
                                             .file_bytes_max = 150,
                                             .disk = &disk});
    if (journal.ok() && (*journal)->Begin(Job()).ok()) {
      durable_step = 0;
      while (durable_step < 12 &&
             (*journal)->Write(Step(durable_step + 1)).ok()) {
        ++durable_step;
      }
      has_ended = durable_step == 12;
    }
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const auto after =
          disk.After(SimulatedDisk::Crash::kUnsyncedAtRandom, seed);
      const int64_t found = StepOf(*Open(after.get()));
      EXPECT_GE(found, durable_step) << "crash at operation " << crash;
      EXPECT_LE(found, durable_step + 1) << "crash at operation " << crash;
    }
    if (has_ended) break;
  }
}

TEST(CoordinatorJournalTest, EndsWithTheFirstErrorOfTheDisk) {
  SimulatedDisk disk;
  const auto journal = Open(&disk);
  ASSERT_OK(journal->Begin(Job()));
  disk.FailOperation(disk.operation_count() + 2,
                     absl::UnavailableError("the disk is away"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(journal->Write(Step(1)),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("run/journal: the disk is away")));
  }
  EXPECT_THAT(journal->status(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(CoordinatorJournalTest, SaysWhatToDoWithADamagedJournal) {
  SimulatedDisk disk;
  const auto first = Open(&disk);
  ASSERT_OK(first->Begin(Job()));
  ASSERT_OK(first->Write(Step(1)));
  const std::string path = "run/journal/epoch-000001.000000";
  std::string content = disk.Get(path);
  content[0] ^= 1;
  disk.Set(path, content);
  EXPECT_THAT(Open(&disk)->ReadPredecessor(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("Remove the folder run/journal")));
  disk.Set(path, FrameJournalRecord("no record"));
  EXPECT_THAT(Open(&disk)->ReadPredecessor(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("not a muster.proto.JournalRecord")));
}

TEST(MergeJournalRecordTest, ProgressKeepsTheHistory) {
  proto::JournalRecord state;
  proto::JournalRecord full = Step(1);
  full.mutable_training()->mutable_state()->add_epoch_numbers(3);
  full.mutable_training()->mutable_state()->add_columns()->set_name("loss");
  full.mutable_training()->add_callback_tensors();
  MergeJournalRecord(full, &state);
  proto::JournalRecord progress = Step(2);
  progress.mutable_training()->set_keeps_history(true);
  progress.mutable_training()->set_keeps_callback_tensors(true);
  MergeJournalRecord(progress, &state);
  const proto::TrainingState& merged = state.training().state();
  EXPECT_EQ(merged.step_in_epoch(), 2);
  EXPECT_THAT(merged.epoch_numbers(), ElementsAre(3));
  EXPECT_EQ(merged.columns_size(), 1);
  EXPECT_EQ(state.training().callback_tensors_size(), 1);
  MergeJournalRecord(Step(3), &state);
  EXPECT_EQ(state.training().state().columns_size(), 0);
  EXPECT_EQ(state.training().callback_tensors_size(), 0);
}

TEST(MergeJournalRecordTest, APlaceEndsAnObstacle) {
  proto::JournalRecord state = Step(1);
  proto::JournalRecord obstacle;
  obstacle.set_obstacle("assignments");
  MergeJournalRecord(obstacle, &state);
  EXPECT_EQ(state.obstacle(), "assignments");
  EXPECT_EQ(state.training().state().step_in_epoch(), 1);
  MergeJournalRecord(Step(2), &state);
  EXPECT_EQ(state.obstacle(), "");
}

TEST(CoordinatorJournalTest, AnObjectStoreHasTheWholeState) {
  ASSERT_OK_AND_ASSIGN(const auto server, S3Server::Start());
  for (const auto& [name, value] : server->Environment()) {
    setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  }
  const auto open = [] {
    return CoordinatorJournal::Open(
        {.folder = "s3://bucket/run/journal", .opened_by = "process 1"});
  };
  ASSERT_OK_AND_ASSIGN(const auto first, open());
  ASSERT_OK(first->Begin(Job()));
  ASSERT_OK(first->Write(Step(5)));
  ASSERT_OK_AND_ASSIGN(const auto second, open());
  EXPECT_EQ(second->epoch(), 2u);
  EXPECT_EQ(StepOf(*second), 5);
  absl::Notification is_durable;
  first->WriteLater(Step(6), [&] { is_durable.Notify(); });
  ASSERT_TRUE(is_durable.WaitForNotificationWithTimeout(absl::Seconds(60)));
  EXPECT_EQ(StepOf(*second), 6);
  ASSERT_OK(second->Begin(Job()));
  EXPECT_THAT(server->Objects(),
              ElementsAre(Pair("run/journal/epoch-000002.000000",
                               HasSubstr("process 1"))));
}

}  // namespace
}  // namespace muster
