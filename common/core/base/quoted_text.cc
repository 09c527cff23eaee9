#include "common/core/base/quoted_text.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

uint32_t CodePoint(absl::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  uint32_t code = sequence.size() == 1   ? lead
                  : sequence.size() == 2 ? lead & 0x1F
                  : sequence.size() == 3 ? lead & 0x0F
                                         : lead & 0x07;
  for (const char c : sequence.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3F);
  }
  return code;
}

bool IsControl(uint32_t code) {
  const bool is_c0_or_c1 = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool separates_lines = code == 0x2028 || code == 0x2029;
  const bool changes_direction = code == 0x200E || code == 0x200F ||
                                 (code >= 0x202A && code <= 0x202E) ||
                                 (code >= 0x2066 && code <= 0x2069);
  return is_c0_or_c1 || separates_lines || changes_direction;
}

// Appends the character at the beginning of `text`. Returns its length in
// bytes.
size_t AppendPrintable(absl::string_view text, std::string* printable) {
  const size_t length = Utf8SequenceLength(text);
  if (length == 0) {
    absl::StrAppendFormat(printable, "\\x%02x",
                          static_cast<unsigned char>(text[0]));
    return 1;
  }
  const absl::string_view character = text.substr(0, length);
  const uint32_t code = CodePoint(character);
  if (!IsControl(code)) {
    printable->append(character.data(), character.size());
  } else if (code < 0x80) {
    absl::StrAppendFormat(printable, "\\x%02x", code);
  } else {
    absl::StrAppendFormat(printable, "\\u%04x", code);
  }
  return length;
}

}  // namespace

size_t Utf8SequenceLength(absl::string_view text) {
  const auto byte = [text](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and values above U+10FFFF.
  const bool is_invalid =
      (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
      (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F);
  return is_invalid ? 0 : length;
}

std::string PrintableText(absl::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    size_t length = 1;
    if (text[0] == '\n' || text[0] == '\t') {
      printable.push_back(text[0]);
    } else {
      length = AppendPrintable(text, &printable);
    }
    text.remove_prefix(length);
  }
  return printable;
}

std::string QuotedText(absl::string_view text, size_t bytes_max) {
  std::string quoted = "\"";
  size_t shown_bytes = 0;
  while (!text.empty() && shown_bytes < bytes_max) {
    size_t length = 1;
    switch (text[0]) {
      case '\n':
        quoted.append("\\n");
        break;
      case '\r':
        quoted.append("\\r");
        break;
      case '\t':
        quoted.append("\\t");
        break;
      case '"':
      case '\\':
        quoted.append({'\\', text[0]});
        break;
      default:
        length = AppendPrintable(text, &quoted);
    }
    text.remove_prefix(length);
    shown_bytes += length;
  }
  if (!text.empty()) quoted.append("...");
  quoted.push_back('"');
  return quoted;
}

}  // namespace muster
