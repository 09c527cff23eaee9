#include "common/io/keras/keras_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/keras/zip_archive.h"
#include "common/io/storage/disk.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return absl::StrCat(testing::TempDir(), name);
}

// Returns the bytes of a file that WriteKerasArchive() wrote.
std::string SavedBytes() {
  const std::string path = PathOf("saved.keras");
  EXPECT_OK(WriteKerasArchive(Disk::Real(), path,
                              {.config = "{\"a\": 1}", .weights = "weights"},
                              absl::FromUnixSeconds(1700000000)));
  return ReadFile(Disk::Real(), path, 1 << 20).value();
}

absl::StatusOr<std::unique_ptr<ZipReader>> OpenBytes(const std::string& bytes) {
  const std::string path = PathOf("opened.zip");
  RETURN_IF_ERROR(ReplaceFile(Disk::Real(), path, bytes));
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                   Disk::Real()->Open(path));
  return ZipReader::Open("x", std::move(file));
}

absl::StatusOr<KerasArchive> ReadBytes(const std::string& bytes) {
  const std::string path = PathOf("read.keras");
  RETURN_IF_ERROR(ReplaceFile(Disk::Real(), path, bytes));
  return ReadKerasArchive(Disk::Real(), path);
}

TEST(KerasArchiveTest, ReadsFilesThatItWrites) {
  const std::string bytes = SavedBytes();
  ASSERT_OK_AND_ASSIGN(const KerasArchive archive, ReadBytes(bytes));
  EXPECT_EQ(archive.config, "{\"a\": 1}");
  EXPECT_EQ(archive.weights, "weights");

  ASSERT_OK_AND_ASSIGN(const auto zip, OpenBytes(bytes));
  EXPECT_THAT(zip->List(),
              ElementsAre("metadata.json", "config.json", "model.weights.h5"));
  EXPECT_THAT(zip->Read("metadata.json", 1000),
              IsOkAndHolds(HasSubstr("\"2023-11-14@22:13:20\"")));
}

TEST(KerasArchiveTest, RejectsOtherFiles) {
  EXPECT_THAT(
      ReadBytes("nothing of the kind"),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is not a zip archive")));
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

// Keras 2.12 writes HDF5 under the name of an archive.
TEST(KerasArchiveTest, TheContentTellsArchivesFromHdf5) {
  EXPECT_THAT(ReadBytes("\x89HDF\r\n\x1a\n"),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(FindKerasFileKind(Disk::Real(), PathOf("read.keras")),
              IsOkAndHolds(KerasFileKind::kLegacy));
  EXPECT_OK(ReadBytes(SavedBytes()));
  EXPECT_THAT(FindKerasFileKind(Disk::Real(), PathOf("read.keras")),
              IsOkAndHolds(KerasFileKind::kArchive));
}

TEST(KerasArchiveTest, LimitsTheSizeOfMembers) {
  const std::string bytes = SavedBytes();
  ASSERT_OK_AND_ASSIGN(const auto zip, OpenBytes(bytes));
  EXPECT_THAT(zip->Read("config.json", 7),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("x: config.json has 8 bytes")));
}

TEST(KerasArchiveTest, RefusesSizesThatTheFileCannotHold) {
  std::string bytes = SavedBytes();
  // In the member's directory entry, the size is at offset 24, the name at 46.
  const size_t name = bytes.rfind("model.weights.h5");
  bytes.replace(name - 46 + 24, 4, "\xff\xff\xff\x7f", 4);
  EXPECT_THAT(ReadBytes(bytes),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("declares 2147483647 bytes")));
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

// A file on a disk that fails after some reads.
class FailingFile : public ReadableFile {
 public:
  FailingFile(std::string bytes, int good_reads)
      : bytes_(std::move(bytes)), good_reads_(good_reads) {}

  int64_t size_bytes() const override {
    return static_cast<int64_t>(bytes_.size());
  }
  absl::Status ReadAt(int64_t offset, absl::Span<uint8_t> bytes) override {
    if (good_reads_-- <= 0) return absl::InternalError("the disk has failed");
    std::copy_n(bytes_.begin() + offset, bytes.size(), bytes.begin());
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
  int good_reads_;
};

TEST(KerasArchiveTest, PassesOnErrorsOfTheDisk) {
  const std::string bytes = SavedBytes();
  int good_reads = 0;
  for (;; ++good_reads) {
    ASSERT_LT(good_reads, 100);
    const auto zip =
        ZipReader::Open("x", std::make_unique<FailingFile>(bytes, good_reads));
    const absl::Status status =
        zip.ok() ? (*zip)->Read("config.json", 100).status() : zip.status();
    if (status.ok()) break;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                                 HasSubstr("the disk has failed")))
        << good_reads;
  }
  EXPECT_GT(good_reads, 1);
}

TEST(KerasArchiveTest, DetectsKindsOfFilesByName) {
  EXPECT_EQ(KerasFileKindOf("a/b.keras"), KerasFileKind::kArchive);
  EXPECT_EQ(KerasFileKindOf("b.weights.h5"), KerasFileKind::kWeights);
  EXPECT_EQ(KerasFileKindOf("b.h5"), KerasFileKind::kLegacy);
  EXPECT_EQ(KerasFileKindOf("b.hdf5"), KerasFileKind::kLegacy);
  EXPECT_EQ(KerasFileKindOf("ckpt-3"), KerasFileKind::kNone);
}

// The limit also applies to weights that are not compressed.
TEST(KerasArchiveTest, WeightsAreWithinTheLimit) {
  const std::string path = PathOf("limit.keras");
  ASSERT_OK(WriteKerasArchive(
      Disk::Real(), path, {.config = "{}", .weights = "weights"}, absl::Now()));
  const auto read = [&](int64_t limit) {
    return ReadKerasArchive(Disk::Real(), path,
                            [&](const KerasArchive& others) {
                              EXPECT_EQ(others.config, "{}");
                              EXPECT_EQ(others.weights, "");
                              return std::optional<int64_t>(limit);
                            });
  };
  EXPECT_OK(read(7).status());
  EXPECT_THAT(read(6).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("model.weights.h5 has 7 bytes; at most 6 are "
                                 "read, which is what the model")));
}

TEST(KerasArchiveTest, WeightsThatCompressWellNeedALimit) {
  // 200 MB of zeros in 200 KB, as zip's deflate writes them.
  const std::string path = "common/io/keras/testdata/zeros.keras";
  EXPECT_THAT(ReadKerasArchive(Disk::Real(), path).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("model.weights.h5 has 200000000 bytes; at "
                                 "most")));
  EXPECT_THAT(ReadKerasArchive(Disk::Real(), path,
                               [](const KerasArchive&) {
                                 return std::optional<int64_t>(200'000'000);
                               })
                  .status(),
              StatusIs(absl::StatusCode::kOk));
}

}  // namespace
}  // namespace muster
