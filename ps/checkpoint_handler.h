#ifndef PS_CHECKPOINT_HANDLER_H_
#define PS_CHECKPOINT_HANDLER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/thread_pool.h"
#include "common/io/checkpoint/disk.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "proto/parameter_server.pb.h"
#include "ps/parameter_shard.h"

namespace muster {

// Where this process may write and read checkpoints when it is told to over the
// network.
struct CheckpointRoots {
  // Absolute folders; none for anywhere.
  std::vector<std::string> folders;

  // `prefix` with its folder's links resolved.
  //   kInvalidArgument   not an absolute path without "..", or of no file
  //   kPermissionDenied  outside of all folders; names them and the flag
  absl::StatusOr<std::string> Resolve(absl::string_view prefix) const;
};

// What a parameter server answers of proto/parameter_server.proto that has to
// do with checkpoints: Freeze, Save, Restore and RollBack.
//
// Saving has a thread of its own, of low priority and at the pace of SavePace,
// so that training goes on beside it; restoring has another.
//
// Thread-safe.
class CheckpointHandler {
 public:
  struct Options {
    CheckpointRoots roots;
    Disk* disk = nullptr;  // Null: the machine's.
  };

  // `admission_check` and `shard` are borrowed.
  CheckpointHandler(const Options& options, AdmissionCheck* admission_check,
                    ParameterShard* shard);

  // Adds the methods; `service` may not outlive this object.
  void AddTo(Service* service);

 private:
  using Handle =
      absl::StatusOr<Message> (CheckpointHandler::*)(const ReceivedMessage&);

  void Add(absl::string_view method, ThreadPool* pool, Handle handle,
           Service* service);
  absl::StatusOr<Message> Freeze(const ReceivedMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Message> Save(const ReceivedMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Message> Restore(const ReceivedMessage& message);
  absl::StatusOr<Message> RollBack(const ReceivedMessage& message);
  absl::StatusOr<std::unique_ptr<FrozenShard>> TakeFrozen(uint64_t cut_id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Says whose it is: the folder may be another on another machine.
  absl::Status Dress(const absl::Status& status,
                     absl::string_view prefix) const;

  const CheckpointRoots roots_;
  Disk* const disk_;
  AdmissionCheck* const admission_check_;
  ParameterShard* const shard_;

  absl::Mutex mutex_;
  // Oldest first: each until it is saved, or too many others are frozen.
  std::deque<std::unique_ptr<FrozenShard>> frozen_ ABSL_GUARDED_BY(mutex_);

  ThreadPool save_pool_;
  ThreadPool restore_pool_;
};

}  // namespace muster

#endif  // PS_CHECKPOINT_HANDLER_H_
