#ifndef COMMON_CORE_SYSTEM_WAIT_LINE_H_
#define COMMON_CORE_SYSTEM_WAIT_LINE_H_

#include <ostream>

#include "common/core/system/log.h"

namespace muster {

// Marks the log lines of one wait. On a terminal the newest replaces the one
// before it, until this process logs something else. Where standard error is no
// terminal, where the process is not in its foreground, and where a line is
// longer than the terminal is wide, each is a line of its own.
//
//   WaitLine line;
//   while (...) LOG(INFO) << line << "waiting for " << ...;
//
// A message that begins with a carriage return replaces the previous one; one
// that has nothing else ends the line.
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
