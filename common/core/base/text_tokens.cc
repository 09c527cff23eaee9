#include "common/core/base/text_tokens.h"

#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

using Standardize = TokenOptions::Standardize;
using Split = TokenOptions::Split;

std::string Standardized(absl::string_view text, Standardize how) {
  const bool to_lower = how == Standardize::kLower || how == Standardize::kBoth;
  const bool strips =
      how == Standardize::kStripPunctuation || how == Standardize::kBoth;
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (strips && absl::ascii_ispunct(static_cast<unsigned char>(c))) continue;
    out += to_lower ? absl::ascii_tolower(static_cast<unsigned char>(c)) : c;
  }
  return out;
}

// The UTF-8 sequences that can begin with one first byte.
struct Sequence {
  size_t size = 0;  // Including the first byte; 0: no sequence begins with it.
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xbf;
};

// Unicode's table of well-formed sequences.
Sequence SequenceOf(uint8_t first) {
  if (first < 0x80) return {.size = 1};
  if (first >= 0xc2 && first <= 0xdf) return {.size = 2};
  if (first == 0xe0) return {.size = 3, .second_min = 0xa0};
  if (first == 0xed) return {.size = 3, .second_max = 0x9f};
  if (first >= 0xe1 && first <= 0xef) return {.size = 3};
  if (first == 0xf0) return {.size = 4, .second_min = 0x90};
  if (first == 0xf4) return {.size = 4, .second_max = 0x8f};
  if (first >= 0xf1 && first <= 0xf3) return {.size = 4};
  return {};
}

void AppendCharacters(absl::string_view text, std::vector<std::string>* out) {
  constexpr absl::string_view kReplacement = "\xef\xbf\xbd";
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
    const Sequence sequence = SequenceOf(byte(i));
    size_t valid = 1;
    while (valid < sequence.size && i + valid < text.size()) {
      const uint8_t next = byte(i + valid);
      const bool is_second = valid == 1;
      if (next < (is_second ? sequence.second_min : 0x80) ||
          next > (is_second ? sequence.second_max : 0xbf)) {
        break;
      }
      ++valid;
    }
    out->emplace_back(valid == sequence.size ? text.substr(i, valid)
                                             : kReplacement);
    i += valid;
  }
}

std::vector<std::string> NGrams(const std::vector<std::string>& tokens,
                                absl::Span<const int64_t> lengths) {
  std::vector<std::string> grams;
  for (const int64_t length : lengths) {
    const size_t size = static_cast<size_t>(length);
    for (size_t i = 0; i + size <= tokens.size(); ++i) {
      grams.push_back(
          absl::StrJoin(absl::MakeConstSpan(tokens).subspan(i, size), " "));
    }
  }
  return grams;
}

}  // namespace

std::vector<std::string> TokensOf(absl::Span<const std::string> texts,
                                  const TokenOptions& options) {
  std::vector<std::string> tokens;
  for (const std::string& text : texts) {
    std::string standard = Standardized(text, options.standardize);
    if (options.split == Split::kNone) {
      tokens.push_back(std::move(standard));
    } else if (options.split == Split::kCharacter) {
      AppendCharacters(standard, &tokens);
    } else {
      for (const absl::string_view token : absl::StrSplit(
               standard, absl::ByAnyChar(" \t\n\v\f\r"), absl::SkipEmpty())) {
        tokens.emplace_back(token);
      }
    }
  }
  return options.ngrams.empty() ? tokens : NGrams(tokens, options.ngrams);
}

}  // namespace muster
