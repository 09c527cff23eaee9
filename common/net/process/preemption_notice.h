#ifndef COMMON_NET_PROCESS_PREEMPTION_NOTICE_H_
#define COMMON_NET_PROCESS_PREEMPTION_NOTICE_H_

#include <atomic>

namespace muster {

// A signal's request that this process end soon, for code that wants
// to save something first. A signal that is not watched for ends training at
// once.
//
// One for the process, as signals are. Thread-safe.
class PreemptionNotice {
 public:
  // While one lives, training is given the time to save: the grace period of
  // ShutdownSignals.
  class Watch {
   public:
    Watch() { OfProcess().watch_count_.fetch_add(1); }
    ~Watch() { OfProcess().watch_count_.fetch_sub(1); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
  };

  static PreemptionNotice& OfProcess();

  // For the receiver of the signal. Returns whether a caller watches, and will
  // see to it that training ends.
  bool Deliver() {
    has_come_.store(true);
    return watch_count_.load() > 0;
  }

  bool has_come() const { return has_come_.load(); }

  // That training has ended because of one that came to this process or to
  // another that trains in sync, with all of them and everything saved.
  void Obey() { was_obeyed_.store(true); }
  bool was_obeyed() const { return was_obeyed_.load(); }

  // For tests: as if none had come.
  void TakeBack() {
    has_come_.store(false);
    was_obeyed_.store(false);
  }

 private:
  PreemptionNotice() = default;

  std::atomic<bool> has_come_{false};
  std::atomic<bool> was_obeyed_{false};
  std::atomic<int> watch_count_{0};
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_PREEMPTION_NOTICE_H_
