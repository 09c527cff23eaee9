#include "common/core/base/text_tokens.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using Split = TokenOptions::Split;
using Standardize = TokenOptions::Standardize;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Tokenize(const std::string& text,
                                  const TokenOptions& options) {
  return TokensOf({text}, options);
}

TEST(TextTokensTest, StandardizesAsciiOnly) {
  const std::string text = "It's [A]\tTEST... \xc3\x84";
  EXPECT_THAT(Tokenize(text, {}), ElementsAre("its", "a", "test", "\xc3\x84"));
  EXPECT_THAT(Tokenize(text, {.standardize = Standardize::kLower}),
              ElementsAre("it's", "[a]", "test...", "\xc3\x84"));
  EXPECT_THAT(Tokenize(text, {.standardize = Standardize::kStripPunctuation}),
              ElementsAre("Its", "A", "TEST", "\xc3\x84"));
  EXPECT_THAT(Tokenize(text, {.standardize = Standardize::kNone,
                              .split = Split::kNone}),
              ElementsAre(text));
  EXPECT_THAT(Tokenize(" \n ", {}), IsEmpty());
}

TEST(TextTokensTest, SplitsCharactersOfUtf8) {
  const TokenOptions options = {.standardize = Standardize::kNone,
                                .split = Split::kCharacter};
  EXPECT_THAT(Tokenize("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", options),
              ElementsAre("a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"));
}

TEST(TextTokensTest, ReplacesInvalidSequences) {
  const TokenOptions options = {.standardize = Standardize::kNone,
                                .split = Split::kCharacter};
  const std::string bad = "\xef\xbf\xbd";
  // A lone continuation byte, an overlong form, a surrogate, a truncated
  // character.
  EXPECT_THAT(Tokenize("\x80"
                       "a",
                       options),
              ElementsAre(bad, "a"));
  EXPECT_THAT(Tokenize("\xc0\xaf", options), ElementsAre(bad, bad));
  EXPECT_THAT(Tokenize("\xed\xa0\x80", options), ElementsAre(bad, bad, bad));
  EXPECT_THAT(Tokenize("\xe2\x82"
                       "a",
                       options),
              ElementsAre(bad, "a"));
  EXPECT_THAT(Tokenize("\xf0\x9f\x98", options), ElementsAre(bad));
}

TEST(TextTokensTest, JoinsNGramsOfEachLength) {
  EXPECT_THAT(Tokenize("a b c", {.ngrams = {1, 2}}),
              ElementsAre("a", "b", "c", "a b", "b c"));
  EXPECT_THAT(Tokenize("a b", {.ngrams = {3}}), IsEmpty());
  const std::vector<std::string> row = {"x y", "z"};
  EXPECT_THAT(TokensOf(row, {.split = Split::kNone, .ngrams = {2}}),
              ElementsAre("x y z"));
}

}  // namespace
}  // namespace muster
