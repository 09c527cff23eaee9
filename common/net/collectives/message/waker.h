#ifndef COMMON_NET_COLLECTIVES_MESSAGE_WAKER_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_WAKER_H_

#include <atomic>

namespace muster {

// Wakes the one thread that moves a group's lanes, from any other thread.
//
// A thread that polls anyway is not to be paid for with system calls, so the
// sleeper says when it is about to sleep:
//
//   waker.Arm();
//   if (nothing has happened) poll(..., waker.fd(), ...);
//   waker.Disarm();
class LaneWaker {
 public:
  LaneWaker();
  ~LaneWaker();
  LaneWaker(const LaneWaker&) = delete;
  LaneWaker& operator=(const LaneWaker&) = delete;

  // Makes fd() readable if the sleeper is armed. Thread-safe. Whatever was
  // written before is seen by the sleeper after Arm() or poll().
  void Wake();

  int fd() const { return fd_; }
  void Arm();
  void Disarm();

 private:
  const int fd_;
  std::atomic<bool> is_armed_{false};
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_WAKER_H_
