#ifndef COMMON_NET_RPC_HAND_OVER_H_
#define COMMON_NET_RPC_HAND_OVER_H_

#include <atomic>

namespace muster {

// gRPC passes what it is given from thread to thread in good order, but Debian
// builds it without the race detector's instruments. The giver says Give() last
// and the taker Take() first, so that the detector sees the order too. Of
// several givers, the taker comes after all.
class HandOver {
 public:
  // Not inline: its callers are not instrumented either.
  void Give();
  void Take() const;

 private:
  std::atomic<bool> given_{false};
};

}  // namespace muster

#endif  // COMMON_NET_RPC_HAND_OVER_H_
