#include "common/io/events/png.h"

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Signature, header and end as in the specification.
constexpr char kHead[] =
    "89504e470d0a1a0a0000000d4948445200000003000000020800000000b81f39c6";
constexpr char kEnd[] = "0000000049454e44ae426082";

TEST(PngTest, HasHeaderAndEndOfTheSpecification) {
  const std::vector<uint8_t> pixels = {0, 1, 2, 3, 4, 5};
  const std::string hex = absl::BytesToHexString(EncodePng(3, 2, 1, pixels));
  EXPECT_EQ(hex.substr(0, sizeof(kHead) - 1), kHead);
  EXPECT_EQ(hex.substr(hex.size() - (sizeof(kEnd) - 1)), kEnd);
}

TEST(PngTest, RowsUnpackToTheirFilterAndPixels) {
  const std::vector<uint8_t> pixels = {10, 20, 30, 40, 50, 60};
  const std::string png = EncodePng(1, 2, 3, pixels);
  const size_t type = png.find("IDAT");
  ASSERT_NE(type, std::string::npos);
  std::vector<uint8_t> rows(16);
  uLongf size = rows.size();
  ASSERT_EQ(uncompress(rows.data(), &size,
                       reinterpret_cast<const Bytef*>(png.data()) + type + 4,
                       png.size() - type - 4),
            Z_OK);
  rows.resize(size);
  EXPECT_EQ(rows, std::vector<uint8_t>({0, 10, 20, 30, 0, 40, 50, 60}));
}

}  // namespace
}  // namespace muster
