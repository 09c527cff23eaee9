#include "ps/log/log_file.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kPath[] = "/log";

// Records of all sizes, with pieces that are copied and others that are not.
class LogFileTest : public testing::Test {
 protected:
  void SetUp() override {
    disk_.Set(kPath, "");
    ASSERT_OK_AND_ASSIGN(const auto file, disk_.AppendFile(kPath));
    for (int number = 1; number <= 4; ++number) {
      proto::ServerLogRecord record;
      record.set_number(number);
      std::vector<absl::Span<const uint8_t>> pieces;
      for (int i = 0; i < 3; ++i) {
        pieces.push_back(absl::MakeConstSpan(bytes_).subspan(
            0, number * number * number * 4001 * (i + 1) / 2));
      }
      ASSERT_OK(AppendLogRecord(record, pieces, file.get()));
      ends_.push_back(file->size_bytes());
      std::string& content = contents_.emplace_back();
      for (const auto piece : pieces) {
        content.append(reinterpret_cast<const char*>(piece.data()),
                       piece.size());
      }
    }
  }

  // Returns the number of whole records before the end.
  absl::StatusOr<int> ReadAll() {
    ASSIGN_OR_RETURN(const auto reader, LogFileReader::Open(&disk_, kPath));
    for (int count = 0;; ++count) {
      ASSIGN_OR_RETURN(const auto entry, reader->Next());
      if (!entry.has_value()) return count;
      EXPECT_EQ(entry->message.number(), count + 1);
      EXPECT_TRUE(
          absl::string_view(reinterpret_cast<const char*>(entry->bytes.data()),
                            entry->bytes.size()) == contents_[count]);
    }
  }

  SimulatedDisk disk_;
  const std::vector<uint8_t> bytes_ = std::vector<uint8_t>(400 << 10, 7);
  std::vector<std::string> contents_;
  std::vector<int64_t> ends_;
};

TEST_F(LogFileTest, ReadsWhatWasWritten) {
  EXPECT_THAT(ReadAll(), IsOkAndHolds(4));
}

TEST_F(LogFileTest, LeavesOutARecordThatIsTorn) {
  const std::string whole = disk_.Get(kPath);
  for (int64_t size = ends_[2]; size < ends_[3]; size += 997) {
    disk_.Set(kPath, whole.substr(0, size));
    EXPECT_THAT(ReadAll(), IsOkAndHolds(3)) << size;
  }
}

TEST_F(LogFileTest, NamesTheDamageOfAWholeRecord) {
  const std::string whole = disk_.Get(kPath);
  for (int64_t at = ends_[1]; at < ends_[2]; at += 4999) {
    std::string damaged = whole;
    damaged[at] ^= 16;
    disk_.Set(kPath, damaged);
    EXPECT_THAT(ReadAll(),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr(absl::StrCat(kPath, " is damaged at byte ",
                                                ends_[1]))))
        << at;
  }
}

}  // namespace
}  // namespace muster
