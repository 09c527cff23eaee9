#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/core/base/hashes.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// RFC 3720, B.4.
TEST(Crc32cTest, KnownAnswers) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(MaskCrc32c(0xe3069283u), 0xc78ab0e5u);
}

TEST(Crc32cTest, EveryWayOfComputingItAgrees) {
  std::string data(20000, '\0');
  uint32_t state = 1;
  for (char& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  for (const size_t size : {1, 7, 8, 9, 63, 4079, 4080, 4081, 12288, 19991}) {
    const absl::string_view part = absl::string_view(data).substr(3, size);
    const uint32_t wanted =
        internal::ExtendCrc32cByTable(0, part.data(), part.size());
    EXPECT_EQ(Crc32c(part), wanted) << size;
    const size_t cut = size / 3;
    EXPECT_EQ(ExtendCrc32c(Crc32c(part.substr(0, cut)), part.data() + cut,
                           size - cut),
              wanted)
        << size;
  }
}

}  // namespace
}  // namespace muster
