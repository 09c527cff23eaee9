#include "common/core/base/quoted_text.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(QuotedTextTest, LeavesTextThatPeopleWrite) {
  EXPECT_EQ(QuotedText("a b 3.5 Zürich 東京 🙂"),
            "\"a b 3.5 Zürich 東京 🙂\"");
  EXPECT_EQ(PrintableText("Zürich\n\"x\" \\ 東京"), "Zürich\n\"x\" \\ 東京");
  EXPECT_EQ(QuotedText(""), "\"\"");
}

TEST(QuotedTextTest, EscapesControlCharactersAndLineBreaks) {
  EXPECT_EQ(QuotedText("\x1b[2J\x1b]0;x\x07"), "\"\\x1b[2J\\x1b]0;x\\x07\"");
  EXPECT_EQ(QuotedText("a\r\nE0101 forged\t\"\\"),
            "\"a\\r\\nE0101 forged\\t\\\"\\\\\"");
  EXPECT_EQ(QuotedText(absl::string_view("\0\x7f", 2)), "\"\\x00\\x7f\"");
  // The C1 form of ESC [, a line separator, and right-to-left override.
  EXPECT_EQ(QuotedText("\xc2\x9b"
                       "2J\xe2\x80\xa8\xe2\x80\xae"),
            "\"\\u009b2J\\u2028\\u202e\"");
  EXPECT_EQ(PrintableText("a\x1b[31m\rb\n"), "a\\x1b[31m\\x0db\n");
}

TEST(QuotedTextTest, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(QuotedText("\xff\xc3"), "\"\\xff\\xc3\"");
  EXPECT_EQ(PrintableText("\xc0\x9b"), "\\xc0\\x9b");
  EXPECT_EQ(Utf8SequenceLength("\xed\xa0\x80"), 0);
}

TEST(QuotedTextTest, ShortensLongText) {
  EXPECT_EQ(QuotedText("abcdef", 3), "\"abc...\"");
  EXPECT_EQ(QuotedText("東京", 4), "\"東京\"");
  EXPECT_LT(QuotedText(std::string(1 << 20, 'x')).size(), 300);
}

}  // namespace
}  // namespace muster
