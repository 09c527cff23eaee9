#ifndef COMMON_CORE_BASE_QUOTED_TEXT_H_
#define COMMON_CORE_BASE_QUOTED_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// Makes text that comes from data, files or other processes safe for messages
// that people read: no character of the result moves a cursor or changes a
// terminal.

// Returns the length of the UTF-8 sequence at the beginning of `text`; 0 if
// there is none.
size_t Utf8SequenceLength(absl::string_view text);

// Returns `text` with an escape (\x1b, \u202e) in place of each control
// character except newlines and tabs, of each character that changes the
// direction of writing or separates lines, and of each byte that is not UTF-8.
std::string PrintableText(absl::string_view text);

// Returns `text` in double quotes on one line, escaped as in C and as
// PrintableText() does. If `text` has more than `bytes_max` bytes, "..."
// replaces the rest.
std::string QuotedText(absl::string_view text, size_t bytes_max = 200);

}  // namespace muster

#endif  // COMMON_CORE_BASE_QUOTED_TEXT_H_
