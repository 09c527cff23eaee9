#include "deploy/launch/terminal_text.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

std::string Shown(absl::string_view bytes) {
  TerminalText text;
  const std::string lines = text.Add(bytes);
  return lines + text.Finish();
}

TEST(TerminalTextTest, LinesStayAsTheyAre) {
  EXPECT_EQ(Shown("a\r\n\r\n  b\tc\nd"), "a\n\n  b\tc\nd\n");
  EXPECT_EQ(Shown(""), "");
}

TEST(TerminalTextTest, OfABarTheLastStateIsLeft) {
  EXPECT_EQ(
      Shown(
          "Epoch 1/2\r\n\r\x1b[1m1/2\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━\x1b[0m"
          " 9s - loss: 2.5000\b\b\b\b\b\b\b\b\b\b\r\x1b[1m2/2\x1b[0m "
          "\x1b[32m━━━━\x1b[0m 1s - loss: 1.5000\r\nEpoch 2/2\r\n"),
      "Epoch 1/2\n2/2 ━━━━ 1s - loss: 1.5000\nEpoch 2/2\n");
}

TEST(TerminalTextTest, ShorterTextLeavesTheRest) {
  EXPECT_EQ(Shown("━━━━\r━x"), "━x━━\n");
  EXPECT_EQ(Shown("abcd\b\bX"), "abXd\n");
  EXPECT_EQ(Shown("\b\bx"), "x\n");
}

TEST(TerminalTextTest, LinesCanBeErased) {
  EXPECT_EQ(Shown("abcd\r\x1b[Kxy"), "xy\n");
  EXPECT_EQ(Shown("abcd\b\b\x1b[0K!"), "ab!\n");
  EXPECT_EQ(Shown("abcd\b\b\x1b[1K"), "  cd\n");
  EXPECT_EQ(Shown("abcd\x1b[2K\n"), "\n");
}

TEST(TerminalTextTest, OtherSequencesAreLeftOut) {
  EXPECT_EQ(Shown("a\x1b[?25lb\x1b]0;title\ac\x1b]8;;x\x1b\\d\x1b(Be\x01\x7f"),
            "abcde\n");
}

TEST(TerminalTextTest, PiecesMayEndAnywhere) {
  const std::string bytes = "1/2 \x1b[32m━\x1b[0m\b\r\x1b[K2/2 ━━\r\nend";
  TerminalText text;
  std::string lines;
  for (const char c : bytes) lines += text.Add(std::string(1, c));
  EXPECT_EQ(lines, "2/2 ━━\n");
  EXPECT_EQ(text.Finish(), "end\n");
  EXPECT_EQ(text.Finish(), "");
}

}  // namespace
}  // namespace muster
