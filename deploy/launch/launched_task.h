#ifndef DEPLOY_LAUNCH_LAUNCHED_TASK_H_
#define DEPLOY_LAUNCH_LAUNCHED_TASK_H_

#include <poll.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/rotating_log.h"
#include "common/net/process/child_process.h"
#include "deploy/launch/console.h"
#include "deploy/launch/task_plan.h"
#include "deploy/launch/terminal_text.h"

namespace muster {

// One task of the cluster through all its starts: its process, and where what
// it writes goes (the console, its log, and its last lines).
//
// Not thread-safe, and nothing here waits.
class LaunchedTask {
 public:
  struct Options {
    std::string log_path;
    int64_t log_bytes_max = 0;  // As RotatingLog.
    int color_index = 0;
    // Its standard output is a terminal and goes to the console as it is. The
    // log gets the lines that remain there.
    bool owns_terminal = false;
  };

  // `console` is borrowed.
  LaunchedTask(TaskPlan plan, Options options, Console* console);

  LaunchedTask(const LaunchedTask&) = delete;
  LaunchedTask& operator=(const LaunchedTask&) = delete;

  TaskId task() const { return plan_.task; }
  const TaskPlan& plan() const { return plan_; }

  // Starts the process; REQUIRES: it is not running.
  //
  //   as ChildProcess::Start, and if the log cannot be opened
  absl::Status Start(absl::Time now);

  // From now on the console does not show what it writes. The log still does.
  void Mute() { is_muted_ = true; }

  bool running() const { return child_ != nullptr; }
  absl::Time started() const { return started_; }

  // Adds the descriptors to poll() while it runs.
  void AppendPollFds(std::vector<pollfd>* fds) const;

  // Hands on what the process has written, and notices its end. After that it
  // is not running.
  std::optional<ProcessEnd> Pump();

  // To the process and all it has started; nothing while it is not running.
  void SendSignal(int signal);

  // The newest lines it wrote, oldest first.
  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  struct Source {
    explicit Source(ConsoleStream stream) : stream(stream) {}

    const ConsoleStream stream;
    int fd = -1;         // Owned by child_; -1 after the end of the stream.
    TerminalText shown;  // If it is a terminal.
    LineCutter cutter;
  };

  void Drain(Source* source);
  void HandOn(Source* source, absl::string_view bytes);
  void KeepText(Source* source, absl::string_view text);
  void OnLine(const Source& source, absl::string_view line);
  bool IsRaw(const Source& source) const {
    return options_.owns_terminal && source.stream == ConsoleStream::kOutput;
  }

  const TaskPlan plan_;
  const Options options_;
  const std::string label_;
  Console* const console_;

  RotatingLog log_;
  absl::Time started_;
  std::unique_ptr<ChildProcess> child_;
  Source output_{ConsoleStream::kOutput};
  Source error_{ConsoleStream::kError};
  std::deque<std::string> last_lines_;
  bool is_muted_ = false;
};

}  // namespace muster

#endif  // DEPLOY_LAUNCH_LAUNCHED_TASK_H_
