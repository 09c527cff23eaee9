// Tests a compressed member of a zip archive whose size exceeds 32 bits.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/keras/zip_archive.h"
#include "common/io/storage/disk.h"
#include "gtest/gtest.h"
#include "zlib.h"

namespace muster {
namespace {

constexpr int64_t kPieceBytes = int64_t{64} << 20;
constexpr int64_t kPieceCount = 65;
constexpr int64_t kMemberBytes = kPieceBytes * kPieceCount;

// Returns zeros that deflate has compressed, such that results can be
// concatenated.
std::string DeflatedZeros(int64_t count, int flush) {
  const std::string zeros(count, '\0');
  z_stream stream = {};
  EXPECT_EQ(
      deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string deflated(deflateBound(&stream, count) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(
      const_cast<char*>(zeros.data()));  // Not written.
  stream.avail_in = static_cast<uInt>(count);
  stream.next_out = reinterpret_cast<Bytef*>(deflated.data());
  stream.avail_out = static_cast<uInt>(deflated.size());
  deflate(&stream, flush);
  EXPECT_EQ(stream.avail_in, 0u);
  deflated.resize(deflated.size() - stream.avail_out);
  deflateEnd(&stream);
  return deflated;
}

uint32_t CrcOfZeros(int64_t count) {
  const std::string zeros(kPieceBytes, '\0');
  const uLong of_piece =
      crc32(0, reinterpret_cast<const Bytef*>(zeros.data()), kPieceBytes);
  uLong crc = of_piece;
  for (int64_t i = 1; i < count / kPieceBytes; ++i) {
    crc = crc32_combine(crc, of_piece, kPieceBytes);
  }
  return static_cast<uint32_t>(crc);
}

// Appends a number with its least significant byte first.
void Put(uint64_t value, int byte_count, std::string* bytes) {
  for (int i = 0; i < byte_count; ++i) {
    bytes->push_back(static_cast<char>(value));
    value >>= 8;
  }
}

// Appends the fields that both headers of a member have, for deflate and Zip64.
void PutMember(uint32_t crc, std::string* bytes) {
  Put(45, 2, bytes);  // Version needed.
  Put(0, 2, bytes);   // Flags.
  Put(8, 2, bytes);   // Deflate.
  Put(0, 2, bytes);   // Time.
  Put(33, 2, bytes);  // Date.
  Put(crc, 4, bytes);
  Put(0xFFFFFFFF, 4, bytes);  // Sizes are in the extra field.
  Put(0xFFFFFFFF, 4, bytes);
  Put(1, 2, bytes);   // Length of the name.
  Put(20, 2, bytes);  // Length of the extra field.
}

void PutSizes(int64_t compressed_bytes, std::string* bytes) {
  Put(1, 2, bytes);
  Put(16, 2, bytes);
  Put(kMemberBytes, 8, bytes);
  Put(compressed_bytes, 8, bytes);
}

// Returns an archive with the member "z".
std::string Archive() {
  std::string content;
  const std::string piece = DeflatedZeros(kPieceBytes, Z_FULL_FLUSH);
  for (int64_t i = 0; i < kPieceCount; ++i) content += piece;
  content += DeflatedZeros(0, Z_FINISH);
  const uint32_t crc = CrcOfZeros(kMemberBytes);
  const auto content_bytes = static_cast<int64_t>(content.size());
  std::string bytes = "PK\x03\x04";
  PutMember(crc, &bytes);
  bytes += "z";
  PutSizes(content_bytes, &bytes);
  bytes += content;
  const size_t directory = bytes.size();
  bytes += "PK\x01\x02";
  Put(45, 2, &bytes);  // Made by.
  PutMember(crc, &bytes);
  Put(0, 14, &bytes);  // No comment; attributes; at the beginning of the file.
  bytes += "z";
  PutSizes(content_bytes, &bytes);
  const size_t directory_bytes = bytes.size() - directory;
  bytes += "PK\x05\x06";
  Put(0, 4, &bytes);
  Put(1, 2, &bytes);
  Put(1, 2, &bytes);
  Put(directory_bytes, 4, &bytes);
  Put(directory, 4, &bytes);
  Put(0, 2, &bytes);
  return bytes;
}

TEST(LargeMemberTest, ReadsMoreThanFourGibibytes) {
  const std::string path = absl::StrCat(testing::TempDir(), "/large.zip");
  ASSERT_OK(ReplaceFile(Disk::Real(), path, Archive()));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<ReadableFile> file,
                       Disk::Real()->Open(path));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ZipReader> zip,
                       ZipReader::Open(path, std::move(file)));
  ASSERT_OK_AND_ASSIGN(const std::string member,
                       zip->Read("z", int64_t{8} << 30));
  EXPECT_EQ(static_cast<int64_t>(member.size()), kMemberBytes);
  EXPECT_EQ(member.find_first_not_of('\0'), std::string::npos);
}

}  // namespace
}  // namespace muster
