#include "common/io/tar/tar_stream.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::Pair;

absl::Span<const uint8_t> BytesOf(const std::string& text) {
  return absl::MakeSpan(reinterpret_cast<const uint8_t*>(text.data()),
                        text.size());
}

std::string ArchiveOf(const std::map<std::string, std::string>& files) {
  std::string archive;
  TarWriter writer([&](absl::Span<const uint8_t> bytes) {
    archive.append(bytes.begin(), bytes.end());
    return absl::OkStatus();
  });
  for (const auto& [name, content] : files) {
    EXPECT_OK(writer.Begin(
        {.name = name, .size_bytes = static_cast<int64_t>(content.size())}));
    EXPECT_OK(writer.Append(BytesOf(content)));
  }
  EXPECT_OK(writer.Finish());
  return archive;
}

// Returns a source that returns at most 100 bytes at a time, as pipes do.
TarReader::Source SourceOf(std::string archive) {
  return [archive = std::move(archive),
          offset = size_t{0}](absl::Span<uint8_t> bytes) mutable {
    const size_t count =
        std::min({bytes.size(), size_t{100}, archive.size() - offset});
    std::memcpy(bytes.data(), archive.data() + offset, count);
    offset += count;
    return absl::StatusOr<size_t>(count);
  };
}

absl::StatusOr<std::map<std::string, std::string>> FilesOf(
    std::string archive) {
  TarReader reader(SourceOf(std::move(archive)));
  std::map<std::string, std::string> files;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<TarFile> file, reader.Next());
    if (!file.has_value()) return files;
    std::string content(static_cast<size_t>(file->size_bytes), '\0');
    RETURN_IF_ERROR(reader.Read(absl::MakeSpan(
        reinterpret_cast<uint8_t*>(content.data()), content.size())));
    files[file->name] = content;
  }
}

TEST(TarStreamTest, ReadsWhatItHasWritten) {
  const std::map<std::string, std::string> files = {
      {"empty", ""},
      {"folder/block", std::string(512, 'b')},
      {"folder/one_more", std::string(513, 'm')},
      {std::string(99, 'n'), "the longest name of a header"},
      {std::string(100, 'n'), "longer"},
      {"a/" + std::string(3000, 'n'), "much longer"}};
  EXPECT_THAT(FilesOf(ArchiveOf(files)), IsOkAndHolds(files));
}

TEST(TarStreamTest, SkipsWhatIsNotRead) {
  TarReader reader(SourceOf(ArchiveOf({{"a", "content"}, {"b", "last"}})));
  ASSERT_OK_AND_ASSIGN(std::optional<TarFile> file, reader.Next());
  ASSERT_OK_AND_ASSIGN(file, reader.Next());
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->name, "b");
  EXPECT_EQ(reader.rest_bytes(), 4);
}

TEST(TarStreamTest, SizesAboveEightGibibytesAreBinary) {
  constexpr int64_t kSize = (int64_t{1} << 40) + 5;
  std::string header;
  TarWriter writer([&](absl::Span<const uint8_t> bytes) {
    header.append(bytes.begin(), bytes.end());
    return absl::OkStatus();
  });
  ASSERT_OK(writer.Begin({.name = "large", .size_bytes = kSize}));
  TarReader reader(SourceOf(header));
  ASSERT_OK_AND_ASSIGN(const std::optional<TarFile> file, reader.Next());
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->size_bytes, kSize);
}

TEST(TarStreamTest, RefusesDamagedArchives) {
  const std::string archive = ArchiveOf({{"a", "content"}});
  for (const size_t size :
       {size_t{0}, size_t{100}, size_t{515}, size_t{1024}}) {
    EXPECT_THAT(FilesOf(archive.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("ends before its last block")))
        << size;
  }
  std::string changed = archive;
  changed[3] ^= 1;
  EXPECT_THAT(FilesOf(changed), StatusIs(absl::StatusCode::kDataLoss,
                                         HasSubstr("expected the checksum")));
}

TEST(TarStreamTest, RefusesNamesOutsideOfTheFolder) {
  for (const char* const name : {"../a", "/etc/passwd", "a/../../b", "a//b"}) {
    EXPECT_THAT(FilesOf(ArchiveOf({{name, "x"}})),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected a path below the folder")))
        << name;
  }
  EXPECT_THAT(FilesOf(ArchiveOf({{"./a/./b", "x"}})),
              IsOkAndHolds(ElementsAre(Pair("a/b", "x"))));
}

}  // namespace
}  // namespace muster
