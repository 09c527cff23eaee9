#ifndef DEPLOY_LAUNCH_TERMINAL_TEXT_H_
#define DEPLOY_LAUNCH_TERMINAL_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// Turns what a program writes to a terminal into the lines that remain there,
// in UTF-8 and without control characters: of a progress bar that is drawn many
// times, the last one. Understands carriage returns, backspaces and the erasing
// of a line; leaves out all other control sequences (ECMA-48), such as colours.
class TerminalText {
 public:
  // Returns the lines that `bytes` complete, each with its "\n".
  std::string Add(absl::string_view bytes);

  // Returns the line that is not complete, with a "\n"; empty if there is none.
  std::string Finish();

 private:
  enum class Escape { kNone, kBegun, kControl, kString };

  void AddCharacter(char c);
  void AddToEscape(char c);
  void EndControl(char final_byte);
  std::string TakeLine();

  std::vector<std::string> line_;  // A character of several bytes in each.
  size_t cursor_ = 0;              // May be line_.size(), and not greater.
  Escape escape_ = Escape::kNone;
  std::string parameters_;  // Of a control sequence.
};

}  // namespace muster

#endif  // DEPLOY_LAUNCH_TERMINAL_TEXT_H_
