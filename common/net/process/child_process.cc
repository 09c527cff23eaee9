#include "common/net/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/system/memory_limits.h"
#include "common/core/system/poll_timeout.h"

namespace muster {
namespace {

constexpr size_t kLimitBytesMax = size_t{1} << 60;

struct ChannelEnds {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

absl::Status SystemError(absl::string_view what) {
  return absl::ErrnoToStatus(errno, what);
}

absl::StatusOr<ChannelEnds> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  return ChannelEnds{FileDescriptor(fds[0]), FileDescriptor(fds[1])};
}

// Opens a terminal in raw mode, which passes all bytes unchanged. It has the
// width of this process' terminal.
absl::StatusOr<ChannelEnds> MakeTerminal() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size.ws_col = 80;
  int outer = -1;
  int inner = -1;
  if (openpty(&outer, &inner, nullptr, nullptr, &size) != 0) {
    return SystemError("cannot open a terminal");
  }
  ChannelEnds channel{FileDescriptor(outer), FileDescriptor(inner)};
  fcntl(outer, F_SETFD, FD_CLOEXEC);
  fcntl(inner, F_SETFD, FD_CLOEXEC);
  termios settings;
  if (tcgetattr(inner, &settings) != 0) return SystemError("no terminal");
  cfmakeraw(&settings);
  tcsetattr(inner, TCSANOW, &settings);
  return channel;
}

std::vector<std::string> MakeEnvironment(const ChildProcess::Options& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (!options.environment.contains(name)) result.emplace_back(text);
  }
  for (const auto& [name, value] : options.environment) {
    if (value.has_value()) result.push_back(absl::StrCat(name, "=", *value));
  }
  return result;
}

// Returns pointers to `strings` and a null pointer, for execvpe(). The strings
// must outlive the result.
std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct ChildSetup {
  char* const* arguments;
  char* const* environment;
  int stdin_fd;
  int stdout_fd;
  int stderr_fd;
  int error_fd;  // Gets errno if the program cannot be executed.
  bool die_with_parent;
  pid_t parent;
};

// Runs between fork() and exec(), in a copy of a process that may have had
// threads. So it makes system calls only, and neither allocates nor locks.
[[noreturn]] void ExecProgram(const ChildSetup& setup) {
  setpgid(0, 0);
  if (setup.die_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != setup.parent) _exit(127);
  }
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const bool connected = dup2(setup.stdin_fd, STDIN_FILENO) >= 0 &&
                         dup2(setup.stdout_fd, STDOUT_FILENO) >= 0 &&
                         dup2(setup.stderr_fd, STDERR_FILENO) >= 0;
  if (connected) {
    execvpe(setup.arguments[0], setup.arguments, setup.environment);
  }
  const int error = errno;
  if (write(setup.error_fd, &error, sizeof(error)) < 0) _exit(126);
  _exit(127);
}

// Blocks until the program has been executed, or returns why it could not be.
absl::Status AwaitExec(int error_fd, absl::string_view program) {
  int error = 0;
  ssize_t count;
  do {
    count = read(error_fd, &error, sizeof(error));
  } while (count < 0 && errno == EINTR);
  if (count != sizeof(error)) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot run ", program));
}

// Number of kills by the kernel that are already the cause of a child's end.
// All children are in the control group of this process, and each kill explains
// the end of one child only.
std::atomic<int64_t> attributed_kill_count = 0;

int64_t UnattributedKillCount() {
  return MemoryGroup().KillCount() - attributed_kill_count;
}

std::string MemoryCause() {
  const MemoryGroup group;
  const size_t limit = group.LimitBytes();
  // Control groups of version 1 report "no limit" as a large number.
  if (limit > kLimitBytesMax) {
    return "probably by the kernel, because the machine had no memory left";
  }
  return absl::StrCat(
      "probably by the kernel, because the processes of control group ",
      group.name().empty() ? "/" : group.name(),
      " exceeded their memory limit of ", limit >> 20,
      " MiB; raise the limit, or lower what the task needs");
}

}  // namespace

std::string ProcessEnd::ToString() const {
  if (signal == 0) return absl::StrCat("exited with status ", exit_code);
  return absl::StrCat("was ended by signal ", signal, " (", strsignal(signal),
                      ")", cause.empty() ? "" : ": ", cause);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const Options& options) {
  if (options.arguments.empty()) {
    return absl::InvalidArgumentError("no program to run");
  }
  ASSIGN_OR_RETURN(ChannelEnds standard_output,
                   options.standard_output == Output::kTerminal ? MakeTerminal()
                                                                : MakePipe());
  ASSIGN_OR_RETURN(ChannelEnds standard_error, MakePipe());
  ASSIGN_OR_RETURN(ChannelEnds exec_error, MakePipe());
  FileDescriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null.get() < 0) return SystemError("/dev/null");

  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = MakeEnvironment(options);
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> environment_pointers = Pointers(environment);
  const ChildSetup setup = {argument_pointers.data(),
                            environment_pointers.data(),
                            null.get(),
                            standard_output.write_end.get(),
                            standard_error.write_end.get(),
                            exec_error.write_end.get(),
                            options.die_with_parent,
                            getpid()};
  const int64_t kill_count = UnattributedKillCount();
  const pid_t pid = fork();
  if (pid < 0) {
    return SystemError(absl::StrCat("cannot start ", arguments.front()));
  }
  if (pid == 0) ExecProgram(setup);
  // Both processes call it, so that the group exists whichever runs first.
  setpgid(pid, pid);

  std::unique_ptr<ChildProcess> child(new ChildProcess);
  child->pid_ = pid;
  child->kill_count_ = kill_count;
  close(exec_error.write_end.Release());
  RETURN_IF_ERROR(AwaitExec(exec_error.read_end.get(), arguments.front()));
  // glibc 2.36 declares pidfd_open() with the wrong linkage for C++.
  child->end_fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (child->end_fd_ < 0) return SystemError("cannot watch a process");
  child->stdout_fd_ = standard_output.read_end.Release();
  child->stderr_fd_ = standard_error.read_end.Release();
  return child;
}

ChildProcess::~ChildProcess() {
  SendSignal(SIGKILL);
  if (!end_.has_value()) waitpid(pid_, nullptr, 0);
  for (int fd : {end_fd_, stdout_fd_, stderr_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void ChildProcess::SendSignal(int signal) {
  if (!end_.has_value()) kill(-pid_, signal);
}

std::optional<ProcessEnd> ChildProcess::Poll() {
  if (end_.has_value()) return end_;
  siginfo_t info = {};
  if (waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  // Kills the group before the child is reaped: until then, no other process
  // can get its pid.
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  ProcessEnd end;
  if (info.si_code == CLD_EXITED) {
    end.exit_code = info.si_status;
  } else {
    end.signal = info.si_status;
  }
  if (end.signal == SIGKILL && UnattributedKillCount() > kill_count_) {
    ++attributed_kill_count;
    end.cause = MemoryCause();
  }
  end_ = end;
  return end_;
}

std::optional<ProcessEnd> ChildProcess::Wait(absl::Duration timeout) {
  Clock* const clock = Clock::Real();
  const absl::Time deadline = clock->Now() + timeout;
  for (;;) {
    if (const std::optional<ProcessEnd> end = Poll()) return end;
    const absl::Duration left = deadline - clock->Now();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    pollfd fd = {end_fd_, POLLIN, 0};
    poll(&fd, 1, PollTimeoutMilliseconds(left));
  }
}

}  // namespace muster
