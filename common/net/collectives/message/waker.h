#ifndef COMMON_NET_COLLECTIVES_MESSAGE_WAKER_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_WAKER_H_

#include <atomic>

namespace muster {

// Wakes the one thread that serves a group's lanes, from any other thread.
//
// To save system calls while that thread is awake, Wake() has an effect only if
// the thread has armed the waker before it sleeps:
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

  // Makes fd() readable if the waker is armed. Thread-safe. After Arm() or
  // poll(), the sleeper sees all writes that precede this call.
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
