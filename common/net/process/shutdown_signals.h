#ifndef COMMON_NET_PROCESS_SHUTDOWN_SIGNALS_H_
#define COMMON_NET_PROCESS_SHUTDOWN_SIGNALS_H_

#include <signal.h>

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// SIGINT and SIGTERM as events on a thread of their own, so that a thread that
// answers them may lock, allocate and log.
//
// The first signal calls the handler. A second one, or an end of the grace
// period while the process still runs, ends the process at once with status
// 128 + signal: a stuck shutdown must not need a third party. The same signal
// again within kEchoTime counts once, because timeout(1) and terminals signal
// the process and its group.
//
// One at a time in a process. Threads inherit what signals they take from the
// thread that starts them, so this must be made before any other thread.
// Thread-safe otherwise.
class ShutdownSignals {
 public:
  static constexpr absl::Duration kEchoTime = absl::Milliseconds(100);

  struct Options {
    absl::Duration grace_period = absl::Seconds(10);
  };

  // Holds both signals back from this thread and those it starts, until one is
  // made: for programs in which something starts threads before, as gRPC does.
  static void HoldBack();

  explicit ShutdownSignals(Options options);
  ShutdownSignals() : ShutdownSignals(Options()) {}

  // The process takes signals again as it did before.
  ~ShutdownSignals();

  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  // `handler` is called once, with the signal, on the signal thread, or on this
  // thread if a signal has already come. It starts the shutdown and returns. An
  // empty one takes the handler back; after that it is not running either.
  void SetHandler(absl::AnyInvocable<void(int signal)> handler)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The first signal that came; 0 before.
  int signal() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until a signal comes or Clock::Real() reaches `deadline`. Returns
  // whether one came.
  bool AwaitSignal(absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The exit status of a process that signal() has ended: 143 for SIGTERM.
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

  // Held while the handler runs, so that taking it back waits for it. Acquired
  // before mutex_.
  absl::Mutex handler_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::AnyInvocable<void(int signal)> handler_ ABSL_GUARDED_BY(handler_mutex_);

  mutable absl::Mutex mutex_;
  int signal_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_SHUTDOWN_SIGNALS_H_
