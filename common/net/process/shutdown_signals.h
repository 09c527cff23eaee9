#ifndef COMMON_NET_PROCESS_SHUTDOWN_SIGNALS_H_
#define COMMON_NET_PROCESS_SHUTDOWN_SIGNALS_H_

#include <signal.h>

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// Receives SIGINT and SIGTERM on a separate thread, so that the handler may
// lock, allocate and log.
//
// The first signal calls the handler. If a second signal arrives, or if the
// process still runs after the grace period, the process ends at once with
// status 128 + signal. So a shutdown that hangs does not need SIGKILL. The same
// signal within kEchoTime of the first is ignored, because timeout(1) and
// terminals send signals to both the process and its group.
//
// A process has at most one instance at a time. Threads inherit their signal
// mask from the thread that starts them, so this object must be created before
// any other thread. Otherwise thread-safe.
class ShutdownSignals {
 public:
  static constexpr absl::Duration kEchoTime = absl::Milliseconds(100);

  struct Options {
    absl::Duration grace_period = absl::Seconds(10);
  };

  // Blocks both signals in this thread and the threads that it starts. A
  // ShutdownSignals that is created later still receives the signals. For
  // programs in which a library, such as gRPC, starts threads before that.
  static void Block();

  explicit ShutdownSignals(Options options);
  ShutdownSignals() : ShutdownSignals(Options()) {}

  // Restores the signal mask.
  ~ShutdownSignals();

  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  // Sets the handler. It is called once, with the signal: on the signal thread,
  // or on this thread if a signal has already arrived. It must start the
  // shutdown and return. An empty `handler` removes the handler; when
  // SetHandler() returns, the old handler is not running.
  void SetHandler(absl::AnyInvocable<void(int signal)> handler)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the first signal that arrived; 0 if none has.
  int signal() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until a signal arrives or Clock::Real() reaches `deadline`. Returns
  // true if a signal has arrived.
  bool AwaitSignal(absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the exit status of a process that signal() ends: 143 for SIGTERM.
  int exit_code() const { return 128 + signal(); }

 private:
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Deliver(int signal) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasSignal() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return signal_ != 0;
  }

  const Options options_;
  sigset_t mask_before_;
  int signal_fd_ = -1;
  int stop_fd_ = -1;

  // Held while the handler runs, so that SetHandler() waits for it. Acquired
  // before mutex_.
  absl::Mutex handler_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::AnyInvocable<void(int signal)> handler_ ABSL_GUARDED_BY(handler_mutex_);

  mutable absl::Mutex mutex_;
  int signal_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_SHUTDOWN_SIGNALS_H_
