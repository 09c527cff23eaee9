#ifndef COMMON_NET_PROCESS_PREEMPTION_NOTICE_H_
#define COMMON_NET_PROCESS_PREEMPTION_NOTICE_H_

#include <atomic>

namespace muster {

// Records that a signal has requested this process to end soon, for code that
// saves something first. If no code watches for the notice, the signal ends
// training at once.
//
// A process has one instance, OfProcess(). Thread-safe.
class PreemptionNotice {
 public:
  // As long as an instance exists, training gets time to save after a signal,
  // within the grace period of ShutdownSignals.
  class Watch {
   public:
    Watch() { OfProcess().watch_count_.fetch_add(1); }
    ~Watch() { OfProcess().watch_count_.fetch_sub(1); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
  };

  static PreemptionNotice& OfProcess();

  // Called by the receiver of the signal. Returns true if a Watch exists, whose
  // owner then ends training.
  bool Deliver() {
    was_received_.store(true);
    return watch_count_.load() > 0;
  }

  bool was_received() const { return was_received_.load(); }

  // Records that training has ended because of a notice, which was sent to this
  // process or to another one that trains in sync. All of these processes have
  // ended training, and everything is saved.
  void MarkHandled() { was_handled_.store(true); }
  bool was_handled() const { return was_handled_.load(); }

  // For tests: resets the state to that before any notice.
  void Reset() {
    was_received_.store(false);
    was_handled_.store(false);
  }

 private:
  PreemptionNotice() = default;

  std::atomic<bool> was_received_{false};
  std::atomic<bool> was_handled_{false};
  std::atomic<int> watch_count_{0};
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_PREEMPTION_NOTICE_H_
