#include "common/net/collectives/message/waker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "common/core/base/check.h"

namespace muster {

LaneWaker::LaneWaker() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MUSTER_CHECK(fd_ >= 0);
}

LaneWaker::~LaneWaker() { close(fd_); }

void LaneWaker::Wake() {
  // Pairs with the fence in Arm(): either the sleeper sees all writes before
  // this call, or this call sees that the waker is armed.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!is_armed_.exchange(false, std::memory_order_acq_rel)) return;
  const uint64_t one = 1;
  // The write fails only if the counter is full. The descriptor is readable
  // then, too.
  (void)!write(fd_, &one, sizeof(one));
}

void LaneWaker::Arm() {
  is_armed_.store(true, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void LaneWaker::Disarm() {
  is_armed_.store(false, std::memory_order_release);
  uint64_t count;
  (void)!read(fd_, &count, sizeof(count));
}

}  // namespace muster
