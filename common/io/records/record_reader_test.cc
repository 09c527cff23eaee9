#include "common/io/records/record_reader.h"

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/records/byte_sink.h"
#include "common/io/records/byte_source.h"
#include "common/io/records/record_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const auto kDataLoss = absl::StatusCode::kDataLoss;

std::string FileOf(const std::vector<std::string>& records,
                   RecordCompression compression = RecordCompression::kNone) {
  std::string content;
  RecordWriter writer(CreateStringSink(&content), {.compression = compression});
  for (const std::string& record : records) EXPECT_OK(writer.Write(record));
  EXPECT_OK(writer.Close());
  return content;
}

RecordReader ReaderOf(absl::string_view content, RecordCompression compression =
                                                     RecordCompression::kNone) {
  return RecordReader(CreateStringSource("a.tfrecord", content),
                      {.compression = compression});
}

// Returns all records and counts errors of single records.
std::vector<std::string> ReadAll(RecordReader* reader, int* error_count) {
  std::vector<std::string> records;
  std::string record;
  while (true) {
    const absl::StatusOr<bool> more = reader->Next(&record);
    if (more.ok() && !*more) return records;
    if (more.ok()) {
      records.push_back(record);
      continue;
    }
    ++*error_count;
    EXPECT_FALSE(more.status().message().empty());
    if (!reader->can_continue()) return records;
  }
}

TEST(RecordReaderTest, ReadsFilesOfEachCompression) {
  const std::vector<std::string> records = {"one", "",
                                            std::string(3 << 20, 'x'), "four"};
  for (const auto compression :
       {RecordCompression::kNone, RecordCompression::kGzip,
        RecordCompression::kZlib}) {
    const std::string content = FileOf(records, compression);
    RecordReader reader = ReaderOf(content, compression);
    int error_count = 0;
    EXPECT_EQ(ReadAll(&reader, &error_count), records);
    EXPECT_EQ(error_count, 0);
    std::string record;
    EXPECT_THAT(reader.Next(&record), IsOkAndHolds(false));
  }
}

TEST(RecordReaderTest, ReadsFiles) {
  const std::string path = testing::TempDir() + "/a.tfrecord";
  std::ofstream(path, std::ios::binary) << FileOf({"one", "two"});
  ASSERT_OK_AND_ASSIGN(const auto reader, RecordReader::Open(path));
  int error_count = 0;
  EXPECT_THAT(ReadAll(reader.get(), &error_count), ElementsAre("one", "two"));
  EXPECT_THAT(RecordReader::Open(path + "x"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path + "x")));
  EXPECT_THAT(RecordReader::Open(testing::TempDir()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
}

TEST(RecordReaderTest, SeveralGzipMembersAreOneFile) {
  const std::string content = FileOf({"one"}, RecordCompression::kGzip) +
                              FileOf({"two"}, RecordCompression::kGzip);
  RecordReader reader = ReaderOf(content, RecordCompression::kGzip);
  int error_count = 0;
  EXPECT_THAT(ReadAll(&reader, &error_count), ElementsAre("one", "two"));
}

TEST(RecordReaderTest, ATruncatedEndIsReportedWithItsOffset) {
  const std::string content = FileOf({"one", "two"});
  for (size_t size = 20; size < content.size(); ++size) {
    RecordReader reader = ReaderOf(absl::string_view(content).substr(0, size));
    std::string record;
    EXPECT_THAT(reader.Next(&record), IsOkAndHolds(true));
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(reader.Next(&record),
                  StatusIs(kDataLoss,
                           AllOf(HasSubstr("a.tfrecord: record 1 at offset 19"),
                                 HasSubstr("ends within"))));
    }
    EXPECT_FALSE(reader.can_continue());
  }
}

TEST(RecordReaderTest, ReadingContinuesAfterADamagedRecord) {
  std::string content = FileOf({"one", "two", "three"});
  content[19 + 12] ^= 1;
  RecordReader reader = ReaderOf(content);
  std::string record;
  EXPECT_THAT(reader.Next(&record), IsOkAndHolds(true));
  EXPECT_THAT(reader.Next(&record),
              StatusIs(kDataLoss, HasSubstr("record 1 at offset 19: the "
                                            "checksum of its 3 bytes")));
  EXPECT_TRUE(reader.can_continue());
  EXPECT_THAT(reader.Next(&record), IsOkAndHolds(true));
  EXPECT_EQ(record, "three");
}

TEST(RecordReaderTest, ADamagedLengthEndsTheFile) {
  std::string content = FileOf({"one", "two"});
  content[19 + 7] ^= 0x40;
  RecordReader reader = ReaderOf(content);
  int error_count = 0;
  EXPECT_THAT(ReadAll(&reader, &error_count), ElementsAre("one"));
  EXPECT_EQ(error_count, 1);
}

TEST(RecordReaderTest, NamesTheFormatOfAForeignFile) {
  std::string record;
  const std::string gzip = FileOf({"one"}, RecordCompression::kGzip);
  EXPECT_THAT(ReaderOf(gzip).Next(&record),
              StatusIs(kDataLoss, HasSubstr("it looks like gzip")));
  const std::string zlib = FileOf({"one"}, RecordCompression::kZlib);
  EXPECT_THAT(ReaderOf(zlib).Next(&record),
              StatusIs(kDataLoss, HasSubstr("it looks like zlib")));
  const std::string plain = FileOf({"one"});
  EXPECT_THAT(ReaderOf(plain, RecordCompression::kGzip).Next(&record),
              StatusIs(kDataLoss, HasSubstr("compressed data is damaged")));
}

TEST(RecordReaderTest, ATruncatedCompressedFileIsAnError) {
  const std::string content = FileOf({"one", "two"}, RecordCompression::kGzip);
  RecordReader reader =
      ReaderOf(absl::string_view(content).substr(0, content.size() - 12),
               RecordCompression::kGzip);
  std::string record;
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = reader.Next(&record);
  EXPECT_THAT(more, StatusIs(kDataLoss, HasSubstr("ends too early")));
}

TEST(RecordReaderTest, ALengthBeyondTheLimitIsRefused) {
  const std::string content = FileOf({"twelve bytes"});
  RecordReader reader(CreateStringSource("a.tfrecord", content),
                      {.record_bytes_max = 11});
  std::string record;
  EXPECT_THAT(reader.Next(&record),
              StatusIs(kDataLoss, HasSubstr("12 bytes; the limit is 11")));
}

TEST(RecordReaderTest, MutatedFilesAreReadOrRejected) {
  for (const auto compression :
       {RecordCompression::kNone, RecordCompression::kGzip}) {
    const std::string content =
        FileOf({"one", std::string(100, 'x'), "three"}, compression);
    int refused_count = 0;
    for (uint64_t i = 0; i < 5000; ++i) {
      std::string mutant = content;
      const uint64_t bits = FoldIn(7, i);
      mutant[bits % mutant.size()] ^= static_cast<char>(1 << (bits >> 60 & 7));
      if (bits >> 59 & 1) mutant.resize((bits >> 20) % mutant.size());
      RecordReader reader = ReaderOf(mutant, compression);
      int error_count = 0;
      ReadAll(&reader, &error_count);
      if (error_count > 0) ++refused_count;
    }
    // A changed bit is always detected; truncation between two records is not.
    EXPECT_GT(refused_count,
              compression == RecordCompression::kNone ? 4900 : 4000);
  }
}

}  // namespace
}  // namespace muster
