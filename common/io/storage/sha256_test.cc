#include "common/io/storage/sha256.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

// The examples of FIPS 180-2.
TEST(Sha256Test, HashesTheExamplesOfTheStandard) {
  EXPECT_EQ(Sha256Of(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecesAreHashedAsOneText) {
  Sha256 hash;
  hash.Add("a");
  hash.Add("");
  hash.Add("bc");
  EXPECT_EQ(hash.Finish(), Sha256Of("abc"));
}

}  // namespace
}  // namespace muster
