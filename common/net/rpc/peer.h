#ifndef COMMON_NET_RPC_PEER_H_
#define COMMON_NET_RPC_PEER_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/net/rpc/network.h"

namespace muster {

namespace proto {
class RequestIdentity;
}  // namespace proto

// The caller and the peer of a channel, for any transport. Signs requests, and
// adds the peer to errors. Thread-safe.
class Peer {
 public:
  // `has_tls`: the peer closes the connection without a reason if it does not
  // accept this task's certificate.
  Peer(const ChannelOptions& options, bool has_tls);

  const std::string& name() const { return name_; }  // As Channel::peer().
  void SetTargetIncarnation(uint64_t incarnation) {
    target_incarnation_.store(incarnation, std::memory_order_relaxed);
  }
  uint64_t target_incarnation() const {
    return target_incarnation_.load(std::memory_order_relaxed);
  }
  void SetJobId(absl::string_view job_id) ABSL_LOCKS_EXCLUDED(mutex_);

  proto::RequestIdentity SignRequest() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns `status` with the peer's name before its message, and with a
  // TaskFailure that names the task, the call and the duration.
  absl::Status AddContext(const absl::Status& status,
                          absl::string_view attempted,
                          absl::Duration waited) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string task_type_;
  const int task_index_;
  const std::string address_;
  const std::string name_;
  const bool has_tls_;
  const TaskIdentity caller_;
  const std::string caller_name_;
  const uint64_t coordinator_epoch_;
  std::atomic<uint64_t> target_incarnation_;
  mutable absl::Mutex mutex_;
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_RPC_PEER_H_
