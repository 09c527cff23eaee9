#ifndef COMMON_CORE_SYSTEM_WAIT_LINE_H_
#define COMMON_CORE_SYSTEM_WAIT_LINE_H_

#include <ostream>

#include "common/core/system/log.h"

namespace muster {

// Marks the log lines of one wait. On a terminal, each line replaces the
// previous one, until this process logs something else. If standard error is
// not a terminal, if the process is not in the foreground, or if a line is
// longer than the terminal is wide, the lines do not replace each other.
//
//   WaitLine line;
//   while (...) LOG(INFO) << line << "waiting for " << ...;
//
// In the log, a message that begins with a carriage return replaces the
// previous one. A message of a carriage return alone ends the line.
//
// Not thread-safe.
class WaitLine {
 public:
  WaitLine() = default;
  // Ends the line on the terminal.
  ~WaitLine() {
    if (has_written_) LOG(INFO) << '\r';
  }

  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;

  friend std::ostream& operator<<(std::ostream& message, WaitLine& line) {
    line.has_written_ = true;
    return message << '\r';
  }

 private:
  bool has_written_ = false;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_WAIT_LINE_H_
