#include "common/net/process/shutdown_signals.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/system/poll_timeout.h"

namespace muster {
namespace {

sigset_t ShutdownSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

void ShutdownSignals::Block() {
  const sigset_t set = ShutdownSet();
  MUSTER_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
}

ShutdownSignals::ShutdownSignals(Options options) : options_(options) {
  const sigset_t set = ShutdownSet();
  MUSTER_CHECK(pthread_sigmask(SIG_BLOCK, &set, &mask_before_) == 0);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  MUSTER_CHECK(signal_fd_ >= 0 && stop_fd_ >= 0);
  thread_ = std::thread([this] { RunLoop(); });
}

ShutdownSignals::~ShutdownSignals() {
  const uint64_t one = 1;
  MUSTER_CHECK(write(stop_fd_, &one, sizeof(one)) == sizeof(one));
  thread_.join();
  close(signal_fd_);
  close(stop_fd_);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void ShutdownSignals::SetHandler(absl::AnyInvocable<void(int)> handler) {
  absl::MutexLock lock(&handler_mutex_);
  const int signal_number = signal();
  if (signal_number != 0 && handler != nullptr) {
    handler(signal_number);
    return;
  }
  handler_ = std::move(handler);
}

int ShutdownSignals::signal() const {
  absl::MutexLock lock(&mutex_);
  return signal_;
}

bool ShutdownSignals::AwaitSignal(absl::Time deadline) const {
  absl::MutexLock lock(&mutex_);
  return Clock::Real()->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ShutdownSignals::HasSignal), deadline);
}

void ShutdownSignals::Deliver(int signal) {
  absl::MutexLock lock(&handler_mutex_);
  {
    absl::MutexLock signal_lock(&mutex_);
    signal_ = signal;
  }
  if (handler_ == nullptr) return;
  handler_(signal);
  handler_ = nullptr;
}

void ShutdownSignals::RunLoop() {
  absl::Time first_at = absl::InfinitePast();
  absl::Time deadline = absl::InfiniteFuture();
  for (;;) {
    pollfd fds[] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    const int ready =
        poll(fds, 2, PollTimeoutMilliseconds(deadline - Clock::Real()->Now()));
    if (ready < 0 && errno == EINTR) continue;
    if (fds[1].revents != 0) return;
    if (ready == 0) {
      LOG(ERROR) << "shutdown has taken longer than its grace period of "
                 << absl::FormatDuration(options_.grace_period)
                 << "; leaving at once";
      _exit(exit_code());
    }
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof(info)) != sizeof(info)) continue;
    const int signal_number = static_cast<int>(info.ssi_signo);
    const absl::Time now = Clock::Real()->Now();
    if (signal_number == signal() && now - first_at < kEchoTime) continue;
    if (signal() != 0) {
      LOG(ERROR) << "a second signal (" << strsignal(signal_number)
                 << "); leaving at once";
      _exit(128 + signal_number);
    }
    first_at = now;
    deadline = now + options_.grace_period;
    Deliver(signal_number);
  }
}

}  // namespace muster
