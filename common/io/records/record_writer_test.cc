#include "common/io/records/record_writer.h"

#include <zlib.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/records/byte_sink.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// The first record of an event file, as TensorBoard writes it.
constexpr char kEventHex[] = "0900000040fc54d9411a0d627261696e2e4576656e743a32";
constexpr char kEventRecordHex[] =
    "1800000000000000a37f4b22"
    "0900000040fc54d9411a0d627261696e2e4576656e743a32"
    "eced8f9d";

std::string FileContent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Inflated(const std::string& bytes, int window_bits) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, window_bits), Z_OK);
  std::string content(1 << 20, '\0');
  std::string input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = static_cast<uInt>(content.size());
  inflate(&stream, Z_SYNC_FLUSH);
  content.resize(stream.total_out);
  inflateEnd(&stream);
  return content;
}

TEST(RecordWriterTest, WritesTheBytesOfTensorFlow) {
  std::string content;
  RecordWriter writer(CreateStringSink(&content));
  ASSERT_OK(writer.Write(absl::HexStringToBytes(kEventHex)));
  ASSERT_OK(writer.Close());
  EXPECT_EQ(absl::BytesToHexString(content), kEventRecordHex);
}

TEST(RecordWriterTest, FlushedRecordsAreInTheFile) {
  const std::string path = testing::TempDir() + "/flushed.tfrecord";
  ASSERT_OK_AND_ASSIGN(const auto writer, RecordWriter::Create(path));
  ASSERT_OK(writer->Write("abc"));
  ASSERT_OK(writer->Flush());
  EXPECT_EQ(FileContent(path).size(), 12u + 3 + 4);
  ASSERT_OK(writer->Write(std::string(200000, 'x')));
  ASSERT_OK(writer->Close());
  EXPECT_EQ(FileContent(path).size(), 12u + 3 + 4 + 12 + 200000 + 4);
}

TEST(RecordWriterTest, CompressedFilesHoldTheSameBytes) {
  std::string plain;
  RecordWriter plain_writer(CreateStringSink(&plain));
  ASSERT_OK(plain_writer.Write("one"));
  ASSERT_OK(plain_writer.Write("two"));

  std::string gzip;
  RecordWriter gzip_writer(CreateStringSink(&gzip),
                           {.compression = RecordCompression::kGzip});
  std::string zlib;
  RecordWriter zlib_writer(CreateStringSink(&zlib),
                           {.compression = RecordCompression::kZlib});
  for (RecordWriter* writer : {&gzip_writer, &zlib_writer}) {
    ASSERT_OK(writer->Write("one"));
    ASSERT_OK(writer->Flush());
    ASSERT_OK(writer->Write("two"));
    ASSERT_OK(writer->Close());
    EXPECT_THAT(writer->Write("three"),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_EQ(Inflated(gzip, 15 + 16), plain);
  EXPECT_EQ(Inflated(zlib, 15), plain);
}

TEST(RecordWriterTest, FlushShowsCompressedRecordsToReaders) {
  std::string zlib;
  RecordWriter writer(CreateStringSink(&zlib),
                      {.compression = RecordCompression::kZlib});
  ASSERT_OK(writer.Write("one"));
  ASSERT_OK(writer.Flush());
  EXPECT_EQ(Inflated(zlib, 15).size(), 12u + 3 + 4);
}

TEST(RecordWriterTest, ErrorsNameTheFile) {
  EXPECT_THAT(RecordWriter::Create("/no/such/folder/a.tfrecord"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("/no/such/folder/a.tfrecord")));
}

TEST(RecordWriterTest, AFullDeviceIsReportedRepeatedly) {
  ASSERT_OK_AND_ASSIGN(const auto writer, RecordWriter::Create("/dev/full"));
  ASSERT_OK(writer->Write("abc"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(writer->Flush(), StatusIs(absl::StatusCode::kResourceExhausted,
                                          HasSubstr("/dev/full")));
  }
  EXPECT_THAT(writer->Write("abc"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(writer->Close(), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace muster
