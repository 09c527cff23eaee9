#ifndef COMMON_NET_PROCESS_CHILD_PROCESS_H_
#define COMMON_NET_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// How a process ended.
struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;  // The signal that ended the process; 0 if none did.
  // The probable cause, if the kernel sent SIGKILL because memory was
  // exhausted; otherwise empty.
  std::string cause;

  bool ok() const { return exit_code == 0 && signal == 0; }

  // Returns the exit status as a shell reports it: 128 + signal if a signal
  // ended the process.
  int ShellCode() const { return signal != 0 ? 128 + signal : exit_code; }

  // Returns "exited with status 1" or "was ended by signal 9 (Killed)",
  // followed by ": " and the cause if there is one.
  std::string ToString() const;
};

// A program that this process has started, in a separate process group. The
// processes that the program starts in turn end with it.
//
// Not thread-safe.
class ChildProcess {
 public:
  enum class Output {
    kPipe,
    // Standard output is a terminal, so that programs show progress bars.
    kTerminal,
  };

  struct Options {
    // The first argument is the executable's path, or a name to search in PATH.
    std::vector<std::string> arguments;

    // Replaces variables of this process' environment; nullopt removes one.
    std::map<std::string, std::optional<std::string>> environment;

    Output standard_output = Output::kPipe;

    // The child gets SIGKILL when the thread that started it ends, for whatever
    // reason. So start children from a thread that lives as long as the
    // program.
    bool die_with_parent = true;
  };

  //   kNotFound           no such executable
  //   kPermissionDenied   the file may not be executed
  //   kResourceExhausted  the limit of processes or open files is reached
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const Options& options);

  // Kills the whole group and reaps the child, unless the child has already
  // been reaped.
  ~ChildProcess();

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // For poll(): readable when the child has ended.
  int end_fd() const { return end_fd_; }

  // The read ends of the child's output. They stay open until this object is
  // destroyed.
  int stdout_fd() const { return stdout_fd_; }
  int stderr_fd() const { return stderr_fd_; }

  // Sends `signal` to the whole group. Does nothing once the child has been
  // reaped.
  void SendSignal(int signal);

  // Returns how the child ended, or nullopt while it runs. Kills the remaining
  // processes of its group and reaps the child when it finds the child ended.
  std::optional<ProcessEnd> Poll();

  // Blocks until the child has ended, but at most for `timeout`. Then returns
  // Poll().
  std::optional<ProcessEnd> Wait(absl::Duration timeout);

 private:
  ChildProcess() = default;

  pid_t pid_ = -1;
  int end_fd_ = -1;
  int stdout_fd_ = -1;
  int stderr_fd_ = -1;
  // KillCount() of this process' control group when the child started, without
  // kills that are the cause of another child's end.
  int64_t kill_count_ = 0;
  std::optional<ProcessEnd> end_;
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_CHILD_PROCESS_H_
