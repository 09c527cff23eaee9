#ifndef COMMON_CORE_BASE_TEXT_TOKENS_H_
#define COMMON_CORE_BASE_TEXT_TOKENS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// Options for splitting text into tokens. The values of the enums are positions
// in the tables of names below, which are Keras'.
struct TokenOptions {
  enum class Standardize { kNone, kLower, kStripPunctuation, kBoth };
  enum class Split { kNone, kWhitespace, kCharacter };

  Standardize standardize = Standardize::kBoth;
  Split split = Split::kWhitespace;
  // The lengths of the n-grams that replace the tokens: {1, 2} for tokens and
  // pairs. Empty: the tokens themselves.
  std::vector<int64_t> ngrams = {};
};

inline constexpr absl::string_view kStandardizeNames[] = {
    "none", "lower", "strip_punctuation", "lower_and_strip_punctuation"};
inline constexpr absl::string_view kSplitNames[] = {"none", "whitespace",
                                                    "character"};

// Returns the tokens of one row of texts. Lower case and punctuation are those
// of ASCII; characters are those of UTF-8, and an invalid sequence of bytes is
// one U+FFFD. The n-grams of each length follow those of the previous length in
// `ngrams`, with a space between their tokens. A row with fewer tokens than a
// length has no n-grams of that length.
//
// Equivalent to: the preprocessing of keras.layers.TextVectorization.
std::vector<std::string> TokensOf(absl::Span<const std::string> texts,
                                  const TokenOptions& options);

}  // namespace muster

#endif  // COMMON_CORE_BASE_TEXT_TOKENS_H_
