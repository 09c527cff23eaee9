#ifndef PS_COPY_SOURCE_H_
#define PS_COPY_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/message.h"
#include "proto/parameter_server.pb.h"
#include "proto/server_log.pb.h"
#include "ps/log/change_recorder.h"
#include "ps/parameter_shard.h"

namespace muster {

// Sends the state of a shard and every change of it to another process, the
// *holder* of a copy (ps/copy_receiver.h). docs/design/server_copies.md has the
// protocol.
//
// The copy is complete when the holder has received the whole state and every
// change since. From a little before that moment on, answers of this server
// wait until the holder has received what they depend on (WhenReceived). So
// whatever another process has seen is in the copy. If the holder is lost,
// answers wait until the coordinator calls Drop(): until then it may let the
// holder take over.
//
// Thread-safe.
class CopySource final : public ChangeRecorder {
 public:
  // Calls `on_replaced` once when the holder has taken over. Runs on a thread
  // of the transport. `shard` is borrowed and outlives this object.
  CopySource(ParameterShard* shard,
             std::function<void(const absl::Status&)> on_replaced);
  ~CopySource() override;

  CopySource(const CopySource&) = delete;
  CopySource& operator=(const CopySource&) = delete;

  // What the first record of the copy says.
  struct Identity {
    std::string task;  // "ps 0".
    uint64_t incarnation = 0;
    uint64_t state_id = 0;
    proto::ServerLogJob job;
  };

  // Begins to send the state to the process at the other end of `channel`, in
  // the place of an earlier holder. If that process is the holder and is
  // connected, does nothing.
  void Keep(const proto::CopyHolder& holder, std::unique_ptr<Channel> channel,
            const Identity& identity) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps no copy from now on, and releases the answers that wait.
  void Drop() ABSL_LOCKS_EXCLUDED(mutex_);
  // As Drop(), but all answers that wait, and later ones, fail (kUnavailable).
  // The shard has no recorder afterwards.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers do not fail any more, after End() and once the shard was cleared.
  void Reopen() ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `then` when the holder has received everything that was recorded
  // before this call, or when there is no need to wait for it. It may be called
  // at once, or later on a thread of the transport.
  //   kUnavailable  the holder has taken over, and may lack what was recorded;
  //                 or after End()
  using Then = absl::AnyInvocable<void(const absl::Status&)>;
  void WhenReceived(Then then) ABSL_LOCKS_EXCLUDED(mutex_);

  // False if WhenReceived() calls its argument at once.
  bool is_active() const { return is_active_.load(std::memory_order_acquire); }
  proto::CopyStatus status() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of the last record that the holder has received if the copy is
  // complete, and otherwise of the last one that was made.
  int64_t log_number() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The next record follows this one.
  void SetLogNumber(int64_t log_number) ABSL_LOCKS_EXCLUDED(mutex_);

  bool is_recording() const override { return is_active(); }
  absl::Status Append(proto::ServerLogRecord record,
                      absl::Span<const absl::Span<const uint8_t>> pieces = {})
      override ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the copy: the coordinator begins another one.
  void RequestSnapshot() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status BeginEmpty(uint64_t state_id) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Session;

  enum class Phase {
    kNone,     // There is no holder.
    kFilling,  // The state is being sent.
    kClosing,  // Everything was sent. Answers given before may depend on
               // records that the holder has not received.
    kComplete,
    kReplaced,  // The holder has taken over.
    kEnded,     // After End().
  };
  struct Waiter {
    int64_t log_number = 0;
    Then then;
  };

  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void DestroyEndedSessions() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the whole state to the holder of the session.
  absl::Status Fill(const std::shared_ptr<Session>& session)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SendState(const std::shared_ptr<Session>& session,
                         const proto::ServerLogRecord& record,
                         absl::Span<const absl::Span<const uint8_t>> pieces)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEvent(Session* session, const proto::CopyEvent& event)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(Session* session, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The holder receives no further records.
  void Break(const std::string& problem) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the session. Returns the answers that need not wait any more.
  std::vector<Then> DropLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Then> TakeReleased() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return phase_ == Phase::kReplaced || phase_ == Phase::kEnded;
  }
  bool MustWait() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool MayWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool HasNoSession() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Logs which task keeps answers waiting, if they wait for some seconds.
  void ReportWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ParameterShard* const shard_;
  const std::function<void(const absl::Status&)> on_replaced_;
  std::atomic<bool> is_active_{false};

  mutable absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kNone;
  // Null in phase kNone. It may be broken.
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mutex_);
  Identity identity_ ABSL_GUARDED_BY(mutex_);
  std::string problem_ ABSL_GUARDED_BY(mutex_);
  bool is_fill_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_sending_ ABSL_GUARDED_BY(mutex_) = false;  // From the freeze on.
  int64_t log_number_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t received_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // The bytes of records that the holder has not received, oldest first.
  std::deque<size_t> unreceived_ ABSL_GUARDED_BY(mutex_);
  size_t unreceived_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // In phase kClosing: the copy is complete when this record was received.
  int64_t closing_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // The bytes of parts of the state that were not applied, oldest first.
  std::deque<size_t> unapplied_ ABSL_GUARDED_BY(mutex_);
  size_t unapplied_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t applied_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  int session_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Open ones.
  // A thread of the transport must not destroy a channel.
  std::vector<std::shared_ptr<Session>> ended_sessions_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // Constant after construction.
};

}  // namespace muster

#endif  // PS_COPY_SOURCE_H_
