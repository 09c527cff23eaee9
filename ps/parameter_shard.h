#ifndef PS_PARAMETER_SHARD_H_
#define PS_PARAMETER_SHARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/core/system/thread_pool.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/net/rpc/message.h"
#include "ps/client/optimizer_requests.h"
#include "ps/frozen_rows.h"
#include "ps/push_ledger.h"
#include "ps/shard_checkpoint.h"
#include "ps/shard_exchange.h"
#include "ps/shard_rules.h"
#include "ps/shard_variable.h"

namespace muster {

class ChangeRecorder;
struct ServerLogEntry;

namespace proto {
class CreateRequest;
class DescribeResponse;
class ExchangeRequest;
class ExchangeResponse;
class Optimizer;
class ServerLogRecord;
class SetOptimizerRequest;
class ShardSpec;
}  // namespace proto

// The variables of one server, and the only code that changes them. Independent
// of clients and transports.
//
// Thread-safe. Exchanges run concurrently, also on the same variable. A
// repeated exchange is applied once.
class ParameterShard {
 public:
  struct Options {
    // Threads that one exchange may use, including the caller's.
    int thread_count = 1;
    // Limit on the bytes of variables and slots together; 0 for no limit.
    size_t memory_bytes_max = 0;
    // Limit on the bytes of one response.
    size_t answer_bytes_max = (size_t{1} << 31) - (size_t{1} << 24);
    int variable_count_max = 1 << 20;
    size_t remembered_push_count_max = size_t{1} << 22;
    // Limit on the bytes of copies that snapshots need because training changes
    // data before it is written; 0 for no limit.
    size_t frozen_bytes_max = 0;
  };

  explicit ParameterShard(const Options& options);
  ~ParameterShard();

  // Creates a shard and fills it with its initial value. Idempotent. Returns
  // the handle by which exchanges refer to it.
  //   kAlreadyExists      the name exists with another type or other rows
  //   kInvalidArgument    the spec is invalid
  //   kResourceExhausted  the memory budget or variable_count_max is exceeded
  absl::StatusOr<uint32_t> Create(const proto::ShardSpec& spec)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);
  // As above, with the options of proto::CreateRequest.
  absl::StatusOr<uint32_t> Create(const proto::CreateRequest& request)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // As VariableStore::SetOptimizer().
  //   kInvalidArgument     a hyperparameter is out of range
  //   kFailedPrecondition  another rule, or one with other slots, is in use
  //   kUnimplemented       the optimizer needs whole variables, and one is
  //                        partitioned; or a slot has another shape than its
  //                        variable
  //   kResourceExhausted   the memory budget does not allow the slots
  absl::Status SetOptimizer(const proto::Optimizer& optimizer)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);
  // As above, for the variables that the request names.
  absl::Status SetOptimizer(const proto::SetOptimizerRequest& request)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // As VariableStore::AssignAverages(). Waits for exchanges in progress.
  absl::Status AssignAverages() ABSL_LOCKS_EXCLUDED(mutex_);

  // Validates the whole request before it applies any update. Updates read the
  // memory of the request directly; its contents may change during the call.
  // The caller owns the tensors in `answers`. `places` is empty, or has one
  // entry for each gather, followed by one for each pull; an answer that was
  // written to its place is not in `answers`.
  //   kNotFound            a handle is unknown
  //   kInvalidArgument     the request is inconsistent, an update does not fit
  //                        its variable, or an answer does not fit its place
  //   kFailedPrecondition  a gradient before SetOptimizer(), or a request of
  //                        another generation
  //   kResourceExhausted   the answer, the slots or the number of remembered
  //                        pushes would be too large
  absl::Status Exchange(const proto::ExchangeRequest& request,
                        absl::Span<const ReceivedTensor> tensors,
                        proto::ExchangeResponse* response,
                        std::vector<Tensor>* answers,
                        absl::Span<const AnswerPlace> places = {})
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Statistics of this shard since it was created, and its size.
  struct Activity {
    int64_t exchange_count = 0;
    int64_t update_count = 0;  // Exchanges that changed variables.
    int64_t repeat_count = 0;  // Updates that had been applied before.
    // Tensors of exchanges, over any transport.
    int64_t bytes_received = 0;
    int64_t bytes_sent = 0;
    // Without optimizer slots.
    int64_t variable_bytes = 0;
    int64_t variable_count = 0;
  };
  Activity activity() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of exchanges received so far.
  int64_t exchange_count() const {
    return exchange_count_.load(std::memory_order_relaxed);
  }

  // Takes a snapshot of all variables. It holds whole exchanges only. Earlier
  // snapshots stay valid.
  //   kFailedPrecondition  a restore is in progress
  absl::StatusOr<std::unique_ptr<FrozenShard>> Freeze(uint64_t snapshot_id)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that the snapshot was saved, or will not be.
  absl::Status NoteSnapshotEnded(uint64_t snapshot_id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the snapshots that were taken before this process, after Replay(),
  // and that have not ended. Oldest first.
  std::vector<std::unique_ptr<FrozenShard>> TakeRestoredSnapshots() {
    return std::exchange(restored_snapshots_, {});
  }

  // Call VerifyStored() and RestoreVariables() for all variables. No training
  // may run meanwhile. Restore() invalidates all snapshots.
  absl::Status Verify(const TensorBundleReader& reader, bool values_only) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Restore(const TensorBundleReader& reader, bool values_only)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for exchanges in progress. Afterwards rejects exchanges of other
  // generations and ignores pushes below `low_water_mark`. Forgets which pushes
  // have been applied. Idempotent.
  //   kFailedPrecondition  the shard is in a higher generation
  //   kInvalidArgument     the generation exceeds ShardVariable::kGenerationMax
  absl::Status RollBack(uint64_t generation, uint64_t low_water_mark)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets all fields but the job id.
  proto::DescribeResponse Describe() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes all variables, the optimizer and the remembered pushes. The
  // recorder begins again, with the state `state_id`.
  void Clear(uint64_t state_id = 0) ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // ---- Records, from which another process can restore this shard. All calls
  // that change the shard fail with the error of the recorder, and change
  // nothing, if it has one.

  // Makes the change that the record describes. Only without a recorder, on
  // one thread. Ignores records that do not concern the shard.
  //   any  the record does not fit the shard, which is then of no use
  absl::Status Replay(const ServerLogEntry& record)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);
  // Passes all further changes to `recorder`, which is borrowed; null for none.
  void SetRecorder(ChangeRecorder* recorder) ABSL_LOCKS_EXCLUDED(mutex_);

  // Everything that Replay() needs to restore the shard. Large arrays are read
  // later, while training continues.
  struct RecordedState {
    std::unique_ptr<FrozenShard> frozen;
    OptimizerRequests optimizers;
    std::vector<PushId> pushes;
    uint64_t low_water_mark = 0;
    uint64_t generation = 0;
    int64_t update_count = 0;
    int64_t handle_count = 0;
    int64_t size_bytes = 0;  // Of the arrays.
  };
  // Takes the state, between two changes. Calls `at_freeze` with its size in
  // bytes before the next change.
  //   kFailedPrecondition  a restore is in progress
  //   others               errors of the recorder or of `at_freeze`
  absl::StatusOr<RecordedState> FreezeForRecords(
      absl::FunctionRef<absl::Status(int64_t size_bytes)> at_freeze)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns the type of a shard.
  //   kInvalidArgument  the spec is invalid
  static absl::StatusOr<TensorType> ShardType(const proto::ShardSpec& spec);
  // True if the shard has all rows of its variable.
  static bool IsWhole(const proto::ShardSpec& spec);
  // Returns null if no variable has this name.
  absl::StatusOr<ShardVariable*> FindExisting(const proto::ShardSpec& spec,
                                              const TensorType& type) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Stores a new variable under its name and handle.
  absl::StatusOr<uint32_t> Add(const proto::CreateRequest& request,
                               Tensor value) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StartOver(ShardVariable* variable,
                         const proto::CreateRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Every change of variables that is not an update runs between these calls.
  void BeginRestore() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndRestore() ABSL_LOCKS_EXCLUDED(mutex_);
  std::unique_ptr<FrozenShard> FreezeLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Passes a record to the recorder. The state must not change meanwhile.
  absl::Status Record(const proto::ServerLogRecord& record)
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Records the updates of an exchange, without what it reads.
  absl::Status RecordUpdates(const proto::ExchangeRequest& request,
                             absl::Span<const ReceivedTensor> tensors)
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Records that an exchange without updates has raised the mark.
  absl::Status RecordMark(uint64_t low_water_mark)
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Records that something changes variables that cannot be repeated.
  absl::Status RecordUnlogged(absl::string_view what)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReplayFreeze(const proto::ServerLogRecord& record)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReplayUpdates(const ServerLogEntry& record)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReplayVariable(const proto::ServerLogRecord& record)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReplayBlock(const ServerLogEntry& record)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns all variables, each with the rule that updates it, which may be
  // null.
  std::vector<RestoredVariable> ListContents() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::shared_ptr<AsideBudget> aside_;
  std::atomic<int64_t> exchange_count_{0};
  std::atomic<int64_t> update_count_{0};
  std::atomic<int64_t> repeat_count_{0};
  std::atomic<int64_t> bytes_received_{0};
  std::atomic<int64_t> bytes_sent_{0};
  ThreadPool pool_;
  PushLedger ledger_;
  ExchangeOrder order_;

  // Shards are created one at a time, while exchanges with other shards
  // continue. Acquired before mutex_.
  absl::Mutex create_mutex_;
  // Held shared during an exchange, and exclusively while the map changes.
  mutable absl::Mutex mutex_;
  // By handle. Never shrinks during a job. Entries are null while a replacement
  // server recreates the variables of the one that was lost.
  std::vector<std::shared_ptr<ShardVariable>> variables_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, uint32_t> handles_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int restore_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Restores in progress.
  ShardRules rules_ ABSL_GUARDED_BY(mutex_);
  // The requests that made rules_.
  OptimizerRequests optimizers_ ABSL_GUARDED_BY(mutex_);
  ChangeRecorder* recorder_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Null: none.
  // Used by Replay() and TakeRestoredSnapshots().
  std::vector<std::unique_ptr<FrozenShard>> restored_snapshots_;
};

}  // namespace muster

#endif  // PS_PARAMETER_SHARD_H_
