#ifndef DEPLOY_LAUNCH_TERMINAL_TEXT_H_
#define DEPLOY_LAUNCH_TERMINAL_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// Converts the output of a program on a terminal to the lines that remain
// visible, in UTF-8 and without control characters. For example, only the last
// state of a progress bar remains. Interprets carriage returns, backspaces and
// the erasing of a line; drops all other control sequences (ECMA-48), such as
// colours.
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

  std::vector<std::string> line_;  // One UTF-8 character each.
  size_t cursor_ = 0;              // At most line_.size().
  Escape escape_ = Escape::kNone;
  std::string parameters_;  // The parameters of a control sequence.
};

}  // namespace muster

#endif  // DEPLOY_LAUNCH_TERMINAL_TEXT_H_
