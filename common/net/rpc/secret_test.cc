#include "common/net/rpc/secret.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(SecretTest, IsDrawnAgainEachTime) {
  const std::string secret = RandomSecret();
  EXPECT_EQ(secret.size(), kSecretBytes);
  EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), secret.npos);
  EXPECT_NE(secret, RandomSecret());
}

TEST(SecretTest, IsComparedToItsEnd) {
  EXPECT_TRUE(IsSameSecret("", ""));
  EXPECT_TRUE(IsSameSecret("secret", std::string("secret")));
  EXPECT_FALSE(IsSameSecret("secret", "secreT"));
  EXPECT_FALSE(IsSameSecret("secret", "Secret"));
  EXPECT_FALSE(IsSameSecret("secret", "secre"));
  EXPECT_FALSE(IsSameSecret("", "secret"));
}

}  // namespace
}  // namespace muster
