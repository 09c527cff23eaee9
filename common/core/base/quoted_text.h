#ifndef COMMON_CORE_BASE_QUOTED_TEXT_H_
#define COMMON_CORE_BASE_QUOTED_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// Text that comes from data, files or other processes, for messages that people
// read: no character of it moves a cursor, changes a terminal or begins a line.

// Returns the length of the UTF-8 sequence at the beginning of `text`; 0 if
// there is none.
size_t Utf8SequenceLength(absl::string_view text);

// Returns `text` with an escape (\x1b, \u202e) in place of each control
// character but line ends and tabs, of each character that changes the
// direction of writing or separates lines, and of each byte that is not UTF-8.
std::string PrintableText(absl::string_view text);

// Returns `text` in double quotes on one line, escaped as in C and as
// PrintableText(). Of a text longer than `bytes_max` the rest becomes "...".
std::string QuotedText(absl::string_view text, size_t bytes_max = 200);

}  // namespace muster

#endif  // COMMON_CORE_BASE_QUOTED_TEXT_H_
