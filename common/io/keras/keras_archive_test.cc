#include "common/io/keras/keras_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "common/io/keras/zip_archive.h"
#include "common/io/storage/disk.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return absl::StrCat(testing::TempDir(), name);
}

// The bytes of a file that was written.
std::string SavedBytes() {
  const std::string path = PathOf("saved.keras");
  EXPECT_OK(WriteKerasArchive(Disk::Real(), path,
                              {.config = "{\"a\": 1}", .weights = "weights"},
                              absl::FromUnixSeconds(1700000000)));
  return ReadFile(Disk::Real(), path, 1 << 20).value();
}

absl::StatusOr<KerasArchive> ReadBytes(const std::string& bytes) {
  const std::string path = PathOf("read.keras");
  RETURN_IF_ERROR(ReplaceFile(Disk::Real(), path, bytes));
  return ReadKerasArchive(Disk::Real(), path);
}

TEST(KerasArchiveTest, ReadsWhatItWrites) {
  const std::string bytes = SavedBytes();
  ASSERT_OK_AND_ASSIGN(const KerasArchive archive, ReadBytes(bytes));
  EXPECT_EQ(archive.config, "{\"a\": 1}");
  EXPECT_EQ(archive.weights, "weights");

  ASSERT_OK_AND_ASSIGN(const auto zip, ZipReader::Open("x", bytes));
  EXPECT_THAT(zip->List(),
              ElementsAre("metadata.json", "config.json", "model.weights.h5"));
  EXPECT_THAT(zip->Read("metadata.json", 1000),
              IsOkAndHolds(HasSubstr("\"2023-11-14@22:13:20\"")));
}

TEST(KerasArchiveTest, SaysWhatOtherFilesAre) {
  EXPECT_THAT(
      ReadBytes("\x89HDF\r\n\x1a\n"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Keras 2")));
  EXPECT_THAT(ReadBytes("nothing of the kind"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no zip")));
  ASSERT_OK_AND_ASSIGN(const std::string other,
                       ZipArchiveOf({{"config.json", "{}"}}, absl::Now()));
  EXPECT_THAT(ReadBytes(other),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("has no model.weights.h5; it has "
                                 "config.json")));
  EXPECT_THAT(ReadKerasArchive(Disk::Real(), PathOf("none.keras")),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadKerasWeights(Disk::Real(), PathOf("saved.keras")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(KerasArchiveTest, LimitsTheSizeOfMembers) {
  const std::string bytes = SavedBytes();
  ASSERT_OK_AND_ASSIGN(const auto zip, ZipReader::Open("x", bytes));
  EXPECT_THAT(zip->Read("config.json", 7),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("x: config.json has 8 bytes")));
}

TEST(KerasArchiveTest, FindsDamage) {
  const std::string whole = SavedBytes();
  std::string damaged = whole;
  damaged[damaged.find("{\"a\"") + 1] ^= 1;
  EXPECT_THAT(ReadBytes(damaged),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("config.json")));
  for (size_t i = 0; i < whole.size(); i += 7) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0xff);
    // Bits that are never read may differ.
    ReadBytes(flipped).status().IgnoreError();
    EXPECT_FALSE(ReadBytes(whole.substr(0, i)).ok()) << i;
  }
}

TEST(KerasArchiveTest, KnowsFilesByTheirNames) {
  EXPECT_EQ(KerasFileKindOf("a/b.keras"), KerasFileKind::kArchive);
  EXPECT_EQ(KerasFileKindOf("b.weights.h5"), KerasFileKind::kWeights);
  EXPECT_EQ(KerasFileKindOf("b.h5"), KerasFileKind::kLegacy);
  EXPECT_EQ(KerasFileKindOf("b.hdf5"), KerasFileKind::kLegacy);
  EXPECT_EQ(KerasFileKindOf("ckpt-3"), KerasFileKind::kNone);
}

}  // namespace
}  // namespace muster
