#include "common/core/base/nesting_depth.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(NestingDepthTest, CountsOpenBrackets) {
  EXPECT_EQ(JsonNestingDepth(""), 0);
  EXPECT_EQ(JsonNestingDepth("3"), 0);
  EXPECT_EQ(JsonNestingDepth("[]"), 1);
  EXPECT_EQ(JsonNestingDepth(R"({"a": [{}, [[]]], "b": {}})"), 4);
  EXPECT_EQ(JsonNestingDepth(std::string(100000, '[')), 100000);
}

TEST(NestingDepthTest, TextsHaveNoBrackets) {
  EXPECT_EQ(JsonNestingDepth(R"(["[[[", "{\"[\\", []])"), 2);
  EXPECT_EQ(JsonNestingDepth(R"("\")"), 0);
}

}  // namespace
}  // namespace muster
