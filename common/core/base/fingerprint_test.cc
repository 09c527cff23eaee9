#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "common/core/base/hashes.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Results of TensorFlow's to_hash_bucket_fast and to_hash_bucket_strong (with
// the key {1, 2}) for 2^63 - 1 buckets and the first `size` bytes of the text.
// The sizes include the smallest and the largest size of each branch of the
// hashes.
struct Golden {
  size_t size;
  uint64_t fingerprint;
  uint64_t sip_hash;
};
constexpr Golden kGolden[] = {
    {0, 1936946117179621456u, 443797209252341628u},
    {1, 6958822807653381721u, 4829867150425401918u},
    {3, 7003889267569045354u, 5441152670475940132u},
    {4, 1001158104500252861u, 8433992615185477971u},
    {7, 6384219026912886920u, 920238294087523173u},
    {8, 8201305380226119935u, 9218128713060762458u},
    {12, 157177195476747084u, 4188748633049450774u},
    {16, 6052272862424356134u, 1607384700659723655u},
    {17, 2098926860416782726u, 881062273943936884u},
    {32, 8819998799441320144u, 7562261171655885139u},
    {33, 6107800517923693518u, 3438465626010898112u},
    {63, 1971854185979124428u, 5053034359649420323u},
    {64, 7767873174540064144u, 4959311412242877846u},
    {65, 4090744603156993132u, 903393927749315496u},
    {128, 8637506759962982341u, 1255808298291183785u},
    {129, 3516650716482532106u, 5848224413367182574u},
    {200, 9201034153364054546u, 4241950577344076451u},
};

TEST(FingerprintTest, MatchesTensorFlow) {
  std::string text;
  while (text.size() < 200) {
    text += "the quick brown fox jumps over the lazy dog ";
  }
  constexpr uint64_t kBuckets = std::numeric_limits<int64_t>::max();
  for (const Golden& golden : kGolden) {
    const std::string bytes = text.substr(0, golden.size);
    EXPECT_EQ(Fingerprint64(bytes) % kBuckets, golden.fingerprint)
        << golden.size;
    EXPECT_EQ(SipHash({1, 2}, bytes) % kBuckets, golden.sip_hash)
        << golden.size;
  }
}

// The first vector of the paper's appendix.
TEST(FingerprintTest, SipHashMatchesThePaper) {
  std::string bytes;
  for (int i = 0; i < 15; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(SipHash({0x0706050403020100, 0x0f0e0d0c0b0a0908}, bytes),
            0xa129ca6149be45e5);
}

}  // namespace
}  // namespace muster
