#ifndef PS_CHECKPOINT_HANDLER_H_
#define PS_CHECKPOINT_HANDLER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/system/thread_pool.h"
#include "common/io/storage/disk.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "ps/parameter_shard.h"

namespace muster {

// The folders in which this process reads and writes checkpoints on behalf of
// remote callers.
struct CheckpointRoots {
  // Absolute paths, and URLs of object stores. If absent, all paths and URLs
  // are allowed.
  std::optional<std::vector<std::string>> folders;

  // Returns `prefix` with the symbolic links of its folder resolved. A URL must
  // be below one of the URLs in `folders`, and a path below one of the paths.
  //   kInvalidArgument   `prefix` is neither an absolute path nor a valid URL,
  //                      contains "." or "..", or names no file
  //   kPermissionDenied  `prefix` is outside of all folders; the message lists
  //                      them and names the flag
  absl::StatusOr<std::string> Resolve(absl::string_view prefix) const;
};

// Handles the checkpoint methods of proto/parameter_server.proto: Freeze, Save,
// Restore and RollBack.
//
// Saves run on one thread with low priority, at the rate of SavePace, while
// training continues. The other methods run on a second thread.
//
// Thread-safe.
class CheckpointHandler {
 public:
  struct Options {
    CheckpointRoots roots;
    Disk* disk = nullptr;  // Null: Disk::Real().
  };

  // Binds the server to the job of a caller, as AdmissionCheck::AdoptJob().
  using AdoptJob =
      std::function<absl::Status(const proto::RequestIdentity& identity)>;

  // `admission_check` and `shard` are borrowed and must outlive this object.
  CheckpointHandler(const Options& options,
                    const AdmissionCheck* admission_check, AdoptJob adopt_job,
                    ParameterShard* shard);

  // Registers the methods. `service` may not outlive this object.
  void AddTo(Service* service);

  // Keeps the snapshots that the shard has restored, so that they can be saved.
  void TakeRestoredSnapshots() ABSL_LOCKS_EXCLUDED(mutex_);

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
  absl::StatusOr<std::unique_ptr<FrozenShard>> TakeFrozen(uint64_t snapshot_id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds this task and its host to the message of an error. The same path can
  // be a different folder on another machine.
  absl::Status Dress(const absl::Status& status,
                     absl::string_view prefix) const;

  const CheckpointRoots roots_;
  Disk* const disk_;
  const AdmissionCheck* const admission_check_;
  const AdoptJob adopt_job_;
  ParameterShard* const shard_;

  absl::Mutex mutex_;
  // Oldest first. A snapshot is kept until it is saved, dropped by its owner,
  // or pushed out by kFrozenMax newer ones.
  std::deque<std::unique_ptr<FrozenShard>> frozen_ ABSL_GUARDED_BY(mutex_);

  ThreadPool save_pool_;
  ThreadPool restore_pool_;
};

}  // namespace muster

#endif  // PS_CHECKPOINT_HANDLER_H_
