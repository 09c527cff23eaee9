#include "tests/cluster/process_under_test.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// Removes variables of the environment that describe another cluster.
ProcessUnderTest::Environment WithoutClusterVariables(
    ProcessUnderTest::Environment environment) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const absl::string_view name = text.substr(0, text.find('='));
    if (name == "TF_CONFIG" || absl::StartsWith(name, "MUSTER_")) {
      environment.emplace(std::string(name), std::nullopt);
    }
  }
  return environment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessUnderTest>> ProcessUnderTest::Start(
    std::vector<std::string> arguments, Environment environment) {
  ChildProcess::Options options;
  options.arguments = std::move(arguments);
  options.environment = WithoutClusterVariables(std::move(environment));
  ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child,
                   ChildProcess::Start(options));
  return std::unique_ptr<ProcessUnderTest>(
      new ProcessUnderTest(std::move(child)));
}

ProcessUnderTest::ProcessUnderTest(std::unique_ptr<ChildProcess> child)
    : child_(std::move(child)), stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  listener_ = std::thread([this] { ListenLoop(); });
}

ProcessUnderTest::~ProcessUnderTest() {
  const uint64_t one = 1;
  if (write(stop_fd_, &one, sizeof(one)) == sizeof(one)) listener_.join();
  close(stop_fd_);
}

absl::StatusOr<std::string> ProcessUnderTest::AwaitLine(
    absl::string_view text, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  for (;;) {
    bool ended;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_news = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return next_line_ < lines_.size() || end_.has_value();
      };
      if (!mutex_.AwaitWithDeadline(absl::Condition(&has_news), deadline)) {
        break;
      }
      while (next_line_ < lines_.size()) {
        const std::string& line = lines_[next_line_++];
        if (absl::StrContains(line, text)) return line;
      }
      ended = end_.has_value();
    }
    if (ended) {
      return MakeError(absl::StatusCode::kFailedPrecondition,
                       absl::StrCat("ended without a line \"", text, "\""));
    }
  }
  return MakeError(absl::StatusCode::kDeadlineExceeded,
                   absl::StrCat("has not written \"", text, "\" within ",
                                absl::FormatDuration(timeout)));
}

void ProcessUnderTest::SendSignal(int signal) {
  absl::MutexLock lock(&mutex_);
  // After the process has been reaped, its id may be reused.
  if (!end_.has_value()) kill(child_->pid(), signal);
}

absl::StatusOr<ProcessEnd> ProcessUnderTest::AwaitEnd(absl::Duration timeout) {
  {
    absl::MutexLock lock(&mutex_);
    const auto has_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return end_.has_value();
    };
    if (mutex_.AwaitWithTimeout(absl::Condition(&has_ended), timeout)) {
      return *end_;
    }
  }
  return MakeError(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrCat("has not ended within ", absl::FormatDuration(timeout)));
}

std::string ProcessUnderTest::output() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrJoin(lines_, "\n");
}

absl::Status ProcessUnderTest::MakeError(absl::StatusCode code,
                                         absl::string_view what) const {
  return absl::Status(code, absl::StrCat("process ", child_->pid(), " ", what,
                                         "; it wrote:\n", output()));
}

void ProcessUnderTest::Take(absl::string_view bytes, std::string* partial) {
  absl::MutexLock lock(&mutex_);
  for (char c : bytes) {
    if (c != '\n') {
      partial->push_back(c);
      continue;
    }
    lines_.push_back(std::exchange(*partial, ""));
  }
}

void ProcessUnderTest::ListenLoop() {
  pollfd fds[] = {{stop_fd_, POLLIN, 0},
                  {child_->end_fd(), POLLIN, 0},
                  {child_->stdout_fd(), POLLIN, 0},
                  {child_->stderr_fd(), POLLIN, 0}};
  std::string partial[2];
  // poll() ignores negative descriptors.
  while (fds[2].fd >= 0 || fds[3].fd >= 0 || fds[1].fd >= 0) {
    poll(fds, 4, -1);
    if (fds[0].revents != 0) return;
    bool read_something = false;
    for (int i : {2, 3}) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[1 << 14];
      const ssize_t count = read(fds[i].fd, buffer, sizeof(buffer));
      if (count <= 0) {
        fds[i].fd = -1;
        continue;
      }
      read_something = true;
      Take(absl::string_view(buffer, count), &partial[i - 2]);
    }
    // Records the end only after all output has been read.
    if (read_something || fds[1].fd < 0 || fds[1].revents == 0) continue;
    const std::optional<ProcessEnd> end = child_->Poll();
    if (!end.has_value()) continue;
    fds[1].fd = -1;
    for (std::string& rest : partial) {
      if (!rest.empty()) Take("\n", &rest);
    }
    absl::MutexLock lock(&mutex_);
    end_ = end;
  }
}

bool AwaitProcessGone(pid_t pid, absl::Duration timeout) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return true;
  pollfd ended = {fd, POLLIN, 0};
  const int ready =
      poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  close(fd);
  return ready == 1;
}

}  // namespace muster
