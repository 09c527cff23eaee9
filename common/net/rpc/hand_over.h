#ifndef COMMON_NET_RPC_HAND_OVER_H_
#define COMMON_NET_RPC_HAND_OVER_H_

#include <atomic>

namespace muster {

// Shows ThreadSanitizer the order that gRPC establishes between two threads.
// gRPC synchronizes the objects that it passes from thread to thread, but
// Debian builds gRPC without ThreadSanitizer's instrumentation. The thread that
// passes an object calls Give() last, and the thread that receives the object
// calls Take() first. If several threads call Give(), Take() is ordered after
// all of them.
class HandOver {
 public:
  // Not inline: the files that call these functions are compiled without
  // instrumentation (.bazelrc).
  void Give();
  void Take() const;

 private:
  std::atomic<bool> given_{false};
};

}  // namespace muster

#endif  // COMMON_NET_RPC_HAND_OVER_H_
