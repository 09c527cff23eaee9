#include "coordinator/journal/journal_file.h"

#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kPath[] = "journal";

std::string TwoRecords() {
  return FrameJournalRecord("first") + FrameJournalRecord("second");
}

TEST(JournalFileTest, ReadsRecords) {
  SimulatedDisk disk;
  disk.Set(kPath, TwoRecords() + FrameJournalRecord(""));
  EXPECT_THAT(ReadJournalFile(&disk, kPath),
              IsOkAndHolds(ElementsAre("first", "second", "")));
  disk.Set(kPath, "");
  EXPECT_THAT(ReadJournalFile(&disk, kPath), IsOkAndHolds(IsEmpty()));
}

TEST(JournalFileTest, NamesAFileThatDoesNotExist) {
  SimulatedDisk disk;
  EXPECT_THAT(ReadJournalFile(&disk, kPath),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(JournalFileTest, LeavesOutARecordThatIsCutAnywhere) {
  const std::string whole = TwoRecords();
  const size_t first_size = FrameJournalRecord("first").size();
  for (size_t size = first_size; size < whole.size(); ++size) {
    SimulatedDisk disk;
    disk.Set(kPath, whole.substr(0, size));
    EXPECT_THAT(ReadJournalFile(&disk, kPath),
                IsOkAndHolds(ElementsAre("first")))
        << size;
  }
}

// A power failure can leave zeros where bytes were not written.
TEST(JournalFileTest, LeavesOutALastRecordWithAWrongByte) {
  const size_t first_size = FrameJournalRecord("first").size();
  for (size_t i = first_size; i < TwoRecords().size(); ++i) {
    std::string damaged = TwoRecords();
    damaged[i] = static_cast<char>(damaged[i] == 0 ? 1 : 0);
    SimulatedDisk disk;
    disk.Set(kPath, damaged);
    EXPECT_THAT(ReadJournalFile(&disk, kPath),
                IsOkAndHolds(ElementsAre("first")))
        << i;
  }
}

TEST(JournalFileTest, RejectsADamagedRecordBeforeAWholeOne) {
  const size_t first_size = FrameJournalRecord("first").size();
  for (size_t i = 0; i < first_size; ++i) {
    std::string damaged = TwoRecords();
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    SimulatedDisk disk;
    disk.Set(kPath, damaged);
    EXPECT_THAT(ReadJournalFile(&disk, kPath),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("journal is damaged at byte 0")))
        << i;
  }
}

}  // namespace
}  // namespace muster
