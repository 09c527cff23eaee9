#include "deploy/launch/terminal_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace muster {
namespace {

// Longer lines are split, and longer parameters are truncated.
constexpr size_t kLineCharactersMax = 1 << 16;
constexpr size_t kParametersMax = 32;

bool ContinuesCharacter(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

std::string TerminalText::Add(absl::string_view bytes) {
  std::string lines;
  for (const char c : bytes) {
    if (escape_ != Escape::kNone) {
      AddToEscape(c);
    } else if (c == '\n' || line_.size() >= kLineCharactersMax) {
      lines += TakeLine();
      if (c != '\n') AddCharacter(c);
    } else {
      AddCharacter(c);
    }
  }
  return lines;
}

std::string TerminalText::Finish() { return line_.empty() ? "" : TakeLine(); }

void TerminalText::AddCharacter(char c) {
  if (c == '\x1b') {
    escape_ = Escape::kBegun;
  } else if (c == '\r') {
    cursor_ = 0;
  } else if (c == '\b') {
    if (cursor_ > 0) --cursor_;
  } else if (ContinuesCharacter(c) && cursor_ > 0) {
    line_[cursor_ - 1].push_back(c);
  } else if (c == '\t' || !absl::ascii_iscntrl(c)) {
    if (cursor_ == line_.size()) line_.emplace_back();
    line_[cursor_++] = std::string(1, c);
  }
}

void TerminalText::AddToEscape(char c) {
  switch (escape_) {
    case Escape::kBegun:
      parameters_.clear();
      if (c == '[') {
        escape_ = Escape::kControl;
      } else if (c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X') {
        escape_ = Escape::kString;
      } else if (c < ' ' || c > '/') {  // Not an intermediate byte.
        escape_ = Escape::kNone;
      }
      break;
    case Escape::kControl:
      if (c >= '@' && c <= '~') {
        EndControl(c);
        escape_ = Escape::kNone;
      } else if (parameters_.size() < kParametersMax) {
        parameters_.push_back(c);
      }
      break;
    case Escape::kString:
      // Ends with a bell or with "ESC \".
      if (c == '\a') escape_ = Escape::kNone;
      if (c == '\x1b') escape_ = Escape::kBegun;
      break;
    case Escape::kNone:
      break;
  }
}

void TerminalText::EndControl(char final_byte) {
  if (final_byte != 'K') return;
  if (parameters_.empty() || parameters_ == "0") {
    line_.resize(cursor_);
  } else {
    std::fill(line_.begin(),
              parameters_ == "1" ? line_.begin() + cursor_ : line_.end(), " ");
  }
}

std::string TerminalText::TakeLine() {
  std::string line;
  for (const std::string& character : line_) line += character;
  line_.clear();
  cursor_ = 0;
  absl::StripTrailingAsciiWhitespace(&line);
  return line + "\n";
}

}  // namespace muster
