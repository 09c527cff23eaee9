#ifndef COMMON_NET_COLLECTIVES_PEERS_DUPLICATE_TASK_PROBE_H_
#define COMMON_NET_COLLECTIVES_PEERS_DUPLICATE_TASK_PROBE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/net/cluster/task_id.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/service.h"

namespace muster {

namespace proto {
class IdentifyRequest;
class IdentifyResponse;
}  // namespace proto

// "worker 1 (localhost:20001, incarnation 6f1c...)".
std::string DescribeProcess(TaskId task, absl::string_view address,
                            uint64_t incarnation);

// Detects whether another process runs as this task: asks the process at this
// task's own address to identify itself, and answers the same question from
// other processes.
//
// Thread-safe.
class DuplicateTaskProbe {
 public:
  struct Self {
    TaskId task;
    uint64_t incarnation = 0;
    std::string address;  // The address on which this process listens.
  };

  // `channel` leads to `cluster_address`, the address of this task in the
  // cluster.
  DuplicateTaskProbe(Self self, std::string cluster_address,
                     std::unique_ptr<Channel> channel);

  void AddTo(Service* service);

  // Calls `done` once, as Channel::StartCall() does:
  //   kFailedPrecondition  another process answers; names it, and carries
  //                        GroupErrorKind::kDuplicateTask
  // OK if this process answers, or none.
  void Start(std::function<void(absl::Status)> done);
  // As Start(), but waits for the result, up to two seconds.
  absl::Status Find();

 private:
  proto::IdentifyRequest Request() const;
  absl::StatusOr<proto::IdentifyResponse> Answer(
      const proto::IdentifyRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Compare(
      const absl::StatusOr<proto::IdentifyResponse>& response) const;

  const Self self_;
  const std::string cluster_address_;
  const std::unique_ptr<Channel> channel_;
  absl::Mutex mutex_;
  uint64_t last_duplicate_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_DUPLICATE_TASK_PROBE_H_
