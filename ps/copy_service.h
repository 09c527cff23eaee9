#ifndef PS_COPY_SERVICE_H_
#define PS_COPY_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/core/system/thread_pool.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "proto/parameter_server.pb.h"
#include "proto/server_log.pb.h"
#include "ps/copy_receiver.h"
#include "ps/copy_source.h"
#include "ps/parameter_shard.h"

namespace muster {

// The part that one server has in copies: at first none; then it is the source
// of a copy, or holds one and may take over. Handles KeepCopy, TakeOver and
// Copy of proto/parameter_server.proto.
//
// Thread-safe.
class CopyService {
 public:
  // All pointers are borrowed.
  struct Parts {
    Network* network = nullptr;
    AdmissionCheck* admission_check = nullptr;
    ParameterShard* shard = nullptr;
    std::function<uint64_t()> state_id;
    // The job of a caller, as it is recorded.
    std::function<proto::ServerLogJob(const proto::RequestIdentity&)> job;
    // This process has taken over.
    std::function<void()> on_taken_over;
    // Another process has taken over from this one.
    std::function<void(const absl::Status&)> on_replaced;
  };

  explicit CopyService(Parts parts);

  // Registers the methods. From now on the methods that `service` has already
  // are refused while this process holds a copy (kFailedPrecondition) or was
  // replaced (kUnavailable), and answer when the holder of the copy has
  // received what the answer depends on; except those that only report and the
  // end of the job. `service` may not outlive this object.
  void AddTo(Service* service);

  // Call it before the server has a job. Without it, the first answers after
  // the begin of a copy may not wait for the holder.
  void Use() { is_used_.store(true); }

  // The state that this process has taken over; unset if it has not.
  std::optional<uint64_t> state_id() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_holder() const { return receiver_.is_holder(); }
  proto::CopyStatus status() const;
  // Sets `copy` and `log_number`, if this server has a part in copies.
  void SetWatchFields(proto::WatchEvent* event) const;

  // Drops the copy that this process holds or is the source of. Then the
  // process can hold another copy.
  void Reset() ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets the answers that wait fail, because this process ends.
  void End();

 private:
  Service::UnaryHandler Guard(Service::UnaryHandler handler);
  absl::Status CheckServes() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Message> KeepCopy(const ReceivedMessage& message);
  absl::StatusOr<Message> TakeOver(const ReceivedMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReplaced(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  const Parts parts_;
  // True once this process has had a part in copies.
  std::atomic<bool> is_used_{false};
  CopySource source_;
  CopyReceiver receiver_;

  mutable absl::Mutex mutex_;
  std::optional<CopyReceiver::Taken> taken_ ABSL_GUARDED_BY(mutex_);
  std::optional<uint64_t> state_id_ ABSL_GUARDED_BY(mutex_);
  absl::Status replaced_ ABSL_GUARDED_BY(mutex_);  // OK if it was not.

  // Taking over lasts longer than a thread of the transport may work.
  ThreadPool pool_;
};

}  // namespace muster

#endif  // PS_COPY_SERVICE_H_
