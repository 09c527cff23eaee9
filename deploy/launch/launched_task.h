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
#include "common/core/system/log_file.h"
#include "common/net/process/child_process.h"
#include "deploy/launch/console.h"
#include "deploy/launch/task_plan.h"
#include "deploy/launch/terminal_text.h"

namespace muster {

// One task of the cluster, with all its restarts. Starts its process, and
// passes its output to the console, to its log, and to last_lines().
//
// Not thread-safe. No method blocks.
class LaunchedTask {
 public:
  struct Options {
    std::string log_path;
    int64_t log_bytes_max = 0;  // As RotatingLog.
    int color_index = 0;
    // If true, the task's standard output is a terminal, and is passed to the
    // console unchanged. The log gets the lines that remain on the terminal.
    bool owns_terminal = false;
  };

  // `console` is borrowed.
  LaunchedTask(TaskPlan plan, Options options, Console* console);

  LaunchedTask(const LaunchedTask&) = delete;
  LaunchedTask& operator=(const LaunchedTask&) = delete;

  TaskId task() const { return plan_.task; }
  const TaskPlan& plan() const { return plan_; }

  // Starts the process. REQUIRES: it is not running.
  //
  //   errors as ChildProcess::Start(), or the log cannot be opened
  absl::Status Start(absl::Time now);

  // Stops passing the task's output to the console. The log still gets it.
  void Mute() { is_muted_ = true; }

  bool running() const { return child_ != nullptr; }
  absl::Time started() const { return started_; }

  // Adds the descriptors for poll(), if the process is running.
  void AppendPollFds(std::vector<pollfd>* fds) const;

  // Passes on the output that the process has written. If the process has
  // ended, returns how; running() is then false.
  std::optional<ProcessEnd> Pump();

  // Sends `signal` to the process and all processes that it has started. Does
  // nothing if the process is not running.
  void SendSignal(int signal);

  // Returns the last lines that the task wrote, oldest first.
  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  struct Source {
    explicit Source(ConsoleStream stream) : stream(stream) {}

    const ConsoleStream stream;
    int fd = -1;         // Owned by child_; -1 after the end of the stream.
    TerminalText shown;  // Used if the stream is a terminal.
    LineSplitter cutter;
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
