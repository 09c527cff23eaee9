#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/hashes.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/checkpoint/coding.h"
#include "common/io/checkpoint/table_reader.h"
#include "common/io/checkpoint/table_writer.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

using Entries = std::map<std::string, std::string>;

std::string WriteTable(const Entries& entries) {
  SimulatedDisk disk;
  {
    const auto file = disk.Create("table");
    TableWriter writer(file->get());
    for (const auto& [key, value] : entries) EXPECT_OK(writer.Add(key, value));
    EXPECT_OK(writer.Finish());
  }
  return disk.Get("table");
}

absl::StatusOr<Entries> ReadBack(absl::string_view table) {
  SimulatedDisk disk;
  disk.Set("table", table);
  Entries entries;
  const absl::Status status = ReadTable(
      &disk, "table", [&](absl::string_view key, absl::string_view value) {
        entries.emplace(key, value);
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return entries;
}

std::string ReadGolden(const std::string& name) {
  std::ifstream file("tests/golden/checkpoints/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// The index that TensorFlow writes for one float32[2] "w" with the values 1 and
// 2.
TEST(TableTest, MatchesTensorFlowsBytes) {
  const Entries entries = {{"", absl::HexStringToBytes("08011a020801")},
                           {"w", absl::HexStringToBytes("08011204120208022808"
                                                        "3559"
                                                        "3ce535")}};
  const std::string wanted = absl::HexStringToBytes(
      absl::StrCat("000006"
                   "08011a020801"
                   "00010f77"
                   "080112041202080228083559"
                   "3ce535",
                   "0000000001000000"
                   "00"
                   "0921adc3",
                   "0000000001000000"
                   "00"
                   "c0f2a1b0",
                   "000102780024"
                   "0000000001000000"
                   "00"
                   "ab30707f",
                   "2908360e", std::string(72, '0'), "57fb808b247547db"));
  EXPECT_EQ(absl::BytesToHexString(WriteTable(entries)),
            absl::BytesToHexString(wanted));
  EXPECT_THAT(ReadBack(wanted), IsOkAndHolds(entries));
}

TEST(TableTest, RewritesIndexesOfTensorFlowByteForByte) {
  for (const char* name : {"dtypes.index", "partitioned.index",
                           "objects/ckpt-2.index", "objects/ckpt-3.index"}) {
    const std::string table = ReadGolden(name);
    ASSERT_OK_AND_ASSIGN(const Entries entries, ReadBack(table));
    EXPECT_GT(entries.size(), 4u);
    EXPECT_TRUE(WriteTable(entries) == table) << name;
  }
}

TEST(TableTest, RoundTripsManyBlocks) {
  Entries entries;
  for (int i = 0; i < 20000; ++i) {
    entries[absl::StrCat("layer_", i % 100, "/weight_", i)] =
        std::string(i % 97, static_cast<char>(i));
  }
  entries[std::string(300000, 'k')] = std::string(600000, 'v');
  entries["\xff\xff"] = "last";
  const std::string table = WriteTable(entries);
  EXPECT_GT(table.size(), 5u * 256 * 1024);
  EXPECT_THAT(ReadBack(table), IsOkAndHolds(entries));
}

TEST(TableTest, RoundTripsAnEmptyTable) {
  EXPECT_THAT(ReadBack(WriteTable({})), IsOkAndHolds(Entries()));
}

TEST(TableTest, DetectsEveryChangedByte) {
  const Entries entries = {{"", "h"}, {"alpha", "1"}, {"alphabet", "22"}};
  const std::string table = WriteTable(entries);
  for (size_t at = 0; at < table.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = table;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_THAT(ReadBack(damaged),
                  StatusIs(absl::StatusCode::kDataLoss,
                           HasSubstr("table is damaged at offset")))
          << at;
    }
    EXPECT_THAT(ReadBack(table.substr(0, at)),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

// Returns a table with a hostile block whose checksum is valid.
std::string WithBlock(std::string block, char compression = 0) {
  const uint64_t size = block.size();
  block.push_back(compression);
  AppendFixed(MaskCrc32c(Crc32c(block)), &block);
  std::string handle;
  AppendVarint(0, &handle);
  AppendVarint(size, &handle);
  std::string table = block;
  std::string footer;
  const auto add = [&](std::string content) {
    AppendVarint(table.size(), &footer);
    AppendVarint(content.size(), &footer);
    content.push_back('\0');
    AppendFixed(MaskCrc32c(Crc32c(content)), &content);
    table += content;
  };
  add(TableBlock(1).Take());
  TableBlock index(1);
  index.Add("z", handle);
  add(index.Take());
  footer.resize(40);
  return table + footer + absl::HexStringToBytes("57fb808b247547db");
}

TEST(TableTest, RejectsHostileBlocks) {
  TableBlock fine(16);
  fine.Add("key", "value");
  ASSERT_OK(ReadBack(WithBlock(fine.Take())));
  const std::string tail = absl::HexStringToBytes("0000000001000000");
  const std::pair<std::string, std::string> hostile[] = {
      {"", "too short"},
      {absl::HexStringToBytes("ffffffff"), "restart points"},
      {absl::HexStringToBytes("050100") + "a" + tail, "does not fit"},
      {absl::HexStringToBytes("00ffffffffffffffffff0100") + "a" + tail,
       "does not fit"},
      {absl::HexStringToBytes("0001ffffffffffffffffff01") + "a" + tail,
       "does not fit"},
      {absl::HexStringToBytes("ffffffffffffffffffffff") + tail, "does not fit"},
      {absl::HexStringToBytes("00010062"
                              "00010061") +
           tail,
       "do not ascend"},
  };
  for (const auto& [block, what] : hostile) {
    EXPECT_THAT(ReadBack(WithBlock(block)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(what)))
        << absl::BytesToHexString(block);
  }
  EXPECT_THAT(ReadBack(WithBlock(fine.Take(), 1)),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("compressed block at offset 0")));
}

TEST(TableTest, MissingFileIsNotFound) {
  SimulatedDisk disk;
  EXPECT_THAT(ReadTable(&disk, "table",
                        [](absl::string_view, absl::string_view) {
                          return absl::OkStatus();
                        }),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("table")));
}

}  // namespace
}  // namespace muster
