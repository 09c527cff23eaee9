#include "common/net/rpc/bounded_log.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;

class BoundedLogTest : public testing::Test {
 protected:
  SimulatedClock clock_;
  std::vector<std::string> lines_;
  BoundedLog log_{
      {.line_count_max = 2, .interval = absl::Seconds(10)},
      &clock_,
      [this](absl::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(BoundedLogTest, WritesAFewLinesInEachIntervalAndCountsTheOthers) {
  for (const char* line : {"a", "b", "c", "d"}) log_.Write(line);
  EXPECT_THAT(lines_, ElementsAre("a", "b"));
  clock_.Advance(absl::Seconds(10));
  log_.Write("e");
  log_.Write("f");
  log_.Write("g");
  EXPECT_THAT(lines_,
              ElementsAre("a", "b",
                          "e (2 others were left out before this line)", "f"));
  EXPECT_EQ(log_.count(), 7);
}

TEST_F(BoundedLogTest, AStrangersTextCannotForgeLinesOrFillTheLog) {
  log_.Write("x\nERROR: forged");
  log_.Write(std::string(100000, 'x'));
  EXPECT_EQ(lines_[0], "x\\nERROR: forged");
  EXPECT_LT(lines_[1].size(), 1000u);
}

}  // namespace
}  // namespace muster
