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
  int signal = 0;  // 0 unless a signal ended it.
  // The probable cause of SIGKILL, if it was the kernel because memory was
  // exhausted; else empty.
  std::string cause;

  bool ok() const { return exit_code == 0 && signal == 0; }

  // As a shell counts: 128 + signal for a process that a signal ended.
  int ShellCode() const { return signal != 0 ? 128 + signal : exit_code; }

  // "exited with status 1", "was ended by signal 9 (Killed)", followed by
  // ": " and the cause if there is one.
  std::string ToString() const;
};

// A program started by this one, in a process group of its own, so that what it
// starts in turn can be ended with it.
//
// Not thread-safe.
class ChildProcess {
 public:
  enum class Output {
    kPipe,
    // The program sees a terminal, and a progress bar behaves as on one.
    kTerminal,
  };

  struct Options {
    // The first is the executable's path, or a name to be found along PATH.
    std::vector<std::string> arguments;

    // Over this process' own environment; nullopt takes a variable away.
    std::map<std::string, std::optional<std::string>> environment;

    Output standard_output = Output::kPipe;

    // SIGKILL comes when the thread that started the child ends, by whatever
    // cause: start children from a thread that lives as long as the program.
    bool die_with_parent = true;
  };

  //   kNotFound           no such executable
  //   kPermissionDenied   it may not be executed
  //   kResourceExhausted  no more processes or files
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const Options& options);

  // Kills the whole group and reaps the child, if that is still to be done.
  ~ChildProcess();

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // For poll(): readable when the child has ended.
  int end_fd() const { return end_fd_; }

  // The output of the child; closed at its end of stream by the reader, never
  // before this object is gone.
  int stdout_fd() const { return stdout_fd_; }
  int stderr_fd() const { return stderr_fd_; }

  // To the whole group; nothing happens once the child has been reaped.
  void SendSignal(int signal);

  // How the child ended, or nullopt while it runs. The first time it is there,
  // what is left of its group is killed.
  std::optional<ProcessEnd> Poll();

  // The same, waiting up to `timeout`.
  std::optional<ProcessEnd> Wait(absl::Duration timeout);

 private:
  ChildProcess() = default;

  pid_t pid_ = -1;
  int end_fd_ = -1;
  int stdout_fd_ = -1;
  int stderr_fd_ = -1;
  // KillCount() of our control group when the child started, without kills
  // that are the cause of another child's end.
  int64_t kill_count_ = 0;
  std::optional<ProcessEnd> end_;
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_CHILD_PROCESS_H_
