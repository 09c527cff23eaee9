#include "deploy/launch/console.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class ConsoleTest : public testing::Test {
 protected:
  ConsoleTest() { EXPECT_EQ(pipe(fds_), 0); }
  ~ConsoleTest() override { close(fds_[0]); }

  Console::Options Options(bool color) const {
    return {.output_fd = fds_[1],
            .error_fd = fds_[1],
            .color = color,
            .label_width = 8};
  }

  std::string Written() {
    close(fds_[1]);
    std::string text;
    char c;
    while (read(fds_[0], &c, 1) == 1) text.push_back(c);
    return text;
  }

  int fds_[2];
};

TEST_F(ConsoleTest, EveryLineStandsBehindItsTask) {
  Console console(Options(false));
  console.WriteLine(ConsoleStream::kOutput, "worker 1", 0, "hello");
  console.WriteLine(ConsoleStream::kError, "ps 0", 1, "");
  EXPECT_EQ(Written(), "worker 1 | hello\nps 0     |\n");
}

TEST_F(ConsoleTest, ColoursOnlyTheName) {
  Console console(Options(true));
  console.WriteLine(ConsoleStream::kOutput, "ps 0", 0, "x");
  EXPECT_EQ(Written(), "\x1b[36mps 0     |\x1b[0m x\n");
}

TEST_F(ConsoleTest, ALineOfAnotherTaskWipesTheBar) {
  Console console(Options(false));
  console.WriteRaw("\r 1/9");
  console.WriteLine(ConsoleStream::kOutput, "ps 0", 0, "x");
  console.WriteRaw("\r 9/9\n");
  console.WriteLine(ConsoleStream::kOutput, "ps 0", 0, "y");
  EXPECT_EQ(Written(), "\r 1/9\r\x1b[Kps 0     | x\n\r 9/9\nps 0     | y\n");
}

TEST(LineCutterTest, CutsWhereverTheBytesCome) {
  std::vector<std::string> lines;
  const auto emit = [&](absl::string_view line) { lines.emplace_back(line); };
  LineSplitter cutter;
  cutter.Add("a", emit);
  cutter.Add("b\r\n\nc\nd", emit);
  EXPECT_THAT(lines, ElementsAre("ab", "", "c"));
  cutter.Finish(emit);
  cutter.Finish(emit);
  EXPECT_THAT(lines, ElementsAre("ab", "", "c", "d"));
}

TEST(LineCutterTest, ALineWithoutEndIsHandedOnInPieces) {
  size_t longest = 0;
  size_t total = 0;
  const auto emit = [&](absl::string_view line) {
    longest = std::max(longest, line.size());
    total += line.size();
  };
  LineSplitter cutter;
  cutter.Add(std::string(1 << 20, 'x'), emit);
  cutter.Finish(emit);
  EXPECT_EQ(total, size_t{1} << 20);
  EXPECT_LE(longest, size_t{1} << 16);
}

}  // namespace
}  // namespace muster
