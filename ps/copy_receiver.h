#ifndef PS_COPY_RECEIVER_H_
#define PS_COPY_RECEIVER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "proto/parameter_server.pb.h"
#include "proto/server_log.pb.h"
#include "ps/parameter_shard.h"

namespace muster {

// Holds a copy of another server's state: receives what ps/copy_source.h sends,
// and applies it to a shard, in order. When the source is lost, TakeOver() ends
// the stream, so that the source can acknowledge nothing more, and the shard
// has the state of the source.
//
// A record is acknowledged when it was received. It is applied later.
//
// Thread-safe.
class CopyReceiver {
 public:
  // Both are borrowed. `shard` is empty and has no recorder; nothing else uses
  // it while is_holder(). The job of the source is adopted.
  CopyReceiver(AdmissionCheck* admission_check, ParameterShard* shard);
  ~CopyReceiver();

  CopyReceiver(const CopyReceiver&) = delete;
  CopyReceiver& operator=(const CopyReceiver&) = delete;

  // Handles a stream from a source, in the place of an earlier one. The stream
  // ends with
  //   kFailedPrecondition  this process works for a job and holds no copy
  //   kAborted             this process has taken over
  //   kDataLoss            a record is missing, or does not fit those before
  std::shared_ptr<StreamObserver> Open(std::shared_ptr<Stream> stream);

  struct Taken {
    uint64_t state_id = 0;
    int64_t log_number = 0;
  };
  // Applies what was received, and ends is_holder(). Blocks for the time that
  // this takes.
  //   kFailedPrecondition  this process holds no complete copy of this state
  //   kDataLoss            the copy ends before `log_number_min`, or cannot be
  //                        applied
  absl::StatusOr<Taken> TakeOver(uint64_t state_id, int64_t log_number_min)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives the copy up and clears the shard.
  void Reset() ABSL_LOCKS_EXCLUDED(mutex_);

  // True from the begin of a copy until TakeOver() or Reset().
  bool is_holder() const ABSL_LOCKS_EXCLUDED(mutex_);
  // "ps 0", whose state this process holds or held; empty before.
  std::string source() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_complete() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of the last record that was received.
  int64_t log_number() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t state_id() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Observer;

  struct Record {
    proto::ServerLogRecord message;
    Tensor bytes;
    int64_t size_bytes = 0;
  };

  // Parts of Observer::OnMessage().
  absl::Status Begin(const std::shared_ptr<Stream>& stream,
                     const proto::RequestIdentity& source,
                     const proto::ServerLogHead& head)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Take(const std::shared_ptr<Stream>& stream,
                    const ReceivedMessage& message) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Queue(Record record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Apply(const Record& record) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the stream; the copy is of no use.
  void GiveUp(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the source what was received, unless too much waits to be applied.
  void Acknowledge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsApplied() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !is_applying_;
  }

  AdmissionCheck* const admission_check_;
  ParameterShard* const shard_;

  mutable absl::Mutex mutex_;
  // The stream from the source; null if it has ended.
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  bool is_holder_ ABSL_GUARDED_BY(mutex_) = false;
  // Why the copy is of no use; OK if it is.
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  proto::ServerLogHead head_ ABSL_GUARDED_BY(mutex_);
  // Parts of the state, and changes after it.
  std::deque<Record> state_records_ ABSL_GUARDED_BY(mutex_);
  std::deque<Record> changes_ ABSL_GUARDED_BY(mutex_);
  bool has_whole_state_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t applied_state_record_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t log_number_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of changes_.
  bool owes_event_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_applying_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // Constant after construction.
};

}  // namespace muster

#endif  // PS_COPY_RECEIVER_H_
