#include "common/net/cluster/incarnation.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(IncarnationTest, EveryIncarnationIsDifferent) {
  EXPECT_NE(NewIncarnation(), NewIncarnation());
  EXPECT_NE(NewIncarnation(), Incarnation());
}

TEST(IncarnationTest, PrintsAsEightDigits) {
  EXPECT_EQ(ToString(Incarnation(0x6f1c02a9'00000001)), "6f1c02a9");
  EXPECT_EQ(ToString(Incarnation(1)), "00000000");
}

}  // namespace
}  // namespace muster
