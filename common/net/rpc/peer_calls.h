#ifndef COMMON_NET_RPC_PEER_CALLS_H_
#define COMMON_NET_RPC_PEER_CALLS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Limits the calls that each peer has in progress, so that no peer uses up the
// memory for all. Thread-safe.
class PeerCalls {
 public:
  explicit PeerCalls(int count_max) : count_max_(count_max) {}

  // A call in progress. It ends when this object is destroyed.
  class Call {
   public:
    Call(Call&& other) = default;
    Call& operator=(Call&& other) = default;

   private:
    friend class PeerCalls;
    struct End {
      PeerCalls* calls;
      void operator()(const std::string* peer) const;
    };
    explicit Call(std::unique_ptr<const std::string, End> peer)
        : peer_(std::move(peer)) {}

    std::unique_ptr<const std::string, End> peer_;
  };

  // Begins a call of `peer`. The PeerCalls must outlive the Call.
  //   kResourceExhausted  the peer already has `count_max` calls in progress
  absl::StatusOr<Call> Begin(absl::string_view peer)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void EndCall(const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);

  const int count_max_;
  absl::Mutex mutex_;
  // Calls in progress, by peer. Without peers that have none.
  absl::flat_hash_map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_RPC_PEER_CALLS_H_
