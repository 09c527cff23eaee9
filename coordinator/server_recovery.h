#ifndef COORDINATOR_SERVER_RECOVERY_H_
#define COORDINATOR_SERVER_RECOVERY_H_

#include <any>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/system/clock.h"
#include "common/learn/strategy/training_recovery.h"
#include "coordinator/closure_ids.h"
#include "coordinator/recovery_saver.h"
#include "coordinator/rollback_point.h"
#include "coordinator/server_copies.h"
#include "coordinator/server_watch.h"
#include "coordinator/training_journal.h"
#include "ps/client/remote_variable_store.h"

namespace muster {

class ClosureDispatcher;

// A loop over closures that saves its state with each snapshot and restores it
// after a rollback. Called on the thread that takes the snapshot or that runs
// AwaitRollback().
class SnapshotParticipant {
 public:
  virtual ~SnapshotParticipant() = default;
  virtual std::shared_ptr<const void> OnSnapshot() = 0;
  // `state` is null if the loop had not started at that snapshot.
  virtual void OnRollback(const void* state) = 0;
};

// Recovers a job after the loss of parameter servers: waits until they are
// restarted. If all have restored their state from their logs, training
// continues, and nothing is undone. Otherwise rolls all servers back to the
// same snapshot, and resumes training. No other process restarts.
// docs/design/recovery.md explains why no step is lost or repeated.
//
// Thread-safe. Recovers on its own thread.
class ServerRecovery final : public TrainingRecovery {
 public:
  struct Options {
    // How long to wait for lost servers. If zero, the first loss ends the job.
    absl::Duration return_timeout = absl::Seconds(60);
    int recovery_count_max = 100;
    absl::Duration report_interval = absl::Seconds(5);
    // How long to wait for running steps to finish before the snapshot.
    absl::Duration drain_timeout = absl::Minutes(2);
    // The folder of checkpoints for recovery. If empty, none are written.
    std::string checkpoint_dir;
    absl::Duration checkpoint_interval = absl::Minutes(1);
    // The generation of exchanges with the servers at the start.
    uint64_t generation = 0;
  };

  // All pointers are borrowed. `describe_variables` describes the variables of
  // a server for messages.
  struct Parts {
    ClosureDispatcher* dispatcher = nullptr;
    ServerCopies* servers = nullptr;
    RemoteVariableStore* variables = nullptr;
    TrainingJournal* journal = nullptr;
    std::function<std::string(int server)> describe_variables;
    Clock* clock = nullptr;
  };

  ServerRecovery(const Options& options, Parts parts);
  ~ServerRecovery() override;

  ServerRecovery(const ServerRecovery&) = delete;
  ServerRecovery& operator=(const ServerRecovery&) = delete;

  // Records that a server was lost, is about to exit, or has reconnected. Does
  // not block.
  void OnServerChange() ABSL_LOCKS_EXCLUDED(mutex_);

  // True from the loss of a server until recovery has ended.
  bool is_recovering() const { return recovering_.load(); }
  // Number of rollbacks.
  int64_t recovery_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Number of servers that came back with their state.
  int64_t restored_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Names the lost servers and the newest checkpoint, for the last log line of
  // a job that ends without a save. Empty if no server is lost.
  std::string DescribeLoss() const;
  // True if this incarnation is the process that holds the server's current
  // variables. False for a replacement that has not been restored.
  bool IsHolder(int server, uint64_t incarnation) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The rollbacks and the returns of servers so far.
  struct History {
    uint64_t generation = 0;
    int64_t restored_count = 0;
  };
  History history() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if a call that changes nothing, and that has failed with
  // `failure`, should be repeated: a server has come back with its state since
  // `before`, and training was not rolled back. Blocks while servers are lost.
  bool ShouldRepeat(const History& before, const absl::Status& failure)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Snapshots.

  // As VariableStore::TakeSnapshot(), between steps: waits for running steps
  // and starts no others meanwhile. Training may be rolled back to the snapshot
  // once it has been written and published.
  //   kAborted           a server is lost, or was lost meanwhile
  //   kDeadlineExceeded  a step does not finish; the message names its worker
  absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot()
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As VariableStore::Restore(). Training can be rolled back to the restored
  // state.
  absl::Status Restore(absl::string_view prefix, bool values_only);
  // Returns the number of snapshots to which training can be rolled back. Each
  // keeps the history of training up to it in memory.
  size_t rollback_point_count() const { return rollback_points_.size(); }
  // Records that variables are about to be changed by something other than a
  // closure.
  //   any  the journal cannot be written
  absl::Status NoteAssigned();
  // True if this coordinator continues the training of an earlier one and has
  // not reached its place: the variables are in place, and what the program
  // assigns to them is ignored.
  bool is_continuing() const { return parts_.journal->is_continuing(); }

  absl::Status CheckCanSave(absl::string_view prefix) override;
  // As CheckCanSave(), for checkpoints for recovery.
  absl::Status CheckCheckpointDir();
  // As RecoverySaver::SaveIfDue(). Postponed while steps are repeated that an
  // earlier coordinator may have run.
  void SaveIfDue(bool at_once = false);

  void SetProgressSource(std::function<std::any()> source) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::any TakeContinuedProgress() override;
  absl::Status NoteTrained() override { return parts_.journal->NoteTrained(); }
  void SetPreemptionSaver(std::function<absl::Status()> save) override {
    saver_.SetPreemptionSaver(std::move(save));
  }
  // `loop` is borrowed until RemoveLoop().
  uint64_t AddLoop(SnapshotParticipant* loop) ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveLoop(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Rollbacks.

  // Sets the handler that is called after each rollback, before closures run.
  // With a handler, unfinished closures stay scheduled, and the caller must
  // schedule the undone ones again. Without one, all scheduled closures are
  // cancelled and a failure (kAborted) is stored in the queue. `handler` must
  // not call the coordinator. Blocks until a call of the previous handler has
  // returned.
  using Handler = std::function<void(const RollbackReport&)>;
  void SetHandler(Handler handler) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::optional<Rollback>> AwaitRollback(
      const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks while a rollback has begun and its handler has not returned; without
  // a handler, until the failure is stored. Returns the number of the last
  // rollback. Values that were read between two calls with equal results are
  // from after that rollback and before the next one. In the handler, returns
  // at once.
  //   kDeadlineExceeded  the recovery of parameter servers does not end
  absl::StatusOr<uint64_t> AwaitAnnouncement() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class UnsavedSnapshot;

  struct Pending {
    RollbackPoint point;
    RollbackReport report;
  };

  absl::StatusOr<std::unique_ptr<VariableSnapshot>> TryToTakeSnapshot()
      ABSL_LOCKS_EXCLUDED(mutex_);
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when training can resume or the job has ended.
  void Recover() ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until every server is connected. Returns false if the job has ended.
  bool AwaitServers() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the servers whose process does not hold the current variables.
  std::vector<RemoteVariableStore::ReplacedServer> Returned() const
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasTrouble() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes over processes that have restored the state of their predecessors,
  // and logs what it cost.
  void TakeRestored() ABSL_LOCKS_EXCLUDED(mutex_);
  // Logs why servers that keep logs have not restored their states.
  void LogNotRestored(
      const std::vector<RemoteVariableStore::ReplacedServer>& returned) const;
  // Ends training if a newer coordinator has replaced this one. Returns whether
  // it has.
  bool EndsBecauseReplaced() ABSL_LOCKS_EXCLUDED(mutex_);
  // Rolls the servers back to the newest possible snapshot.
  //   kNotFound  there is no snapshot to roll back to
  absl::StatusOr<RollbackPoint> RollServersBack(
      const std::vector<RemoteVariableStore::ReplacedServer>& returned)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RollServersBackTo(
      const RollbackPoint& point,
      const std::vector<RemoteVariableStore::ReplacedServer>& returned)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the returned servers hold the variables from now on.
  //   any  the journal cannot be written
  absl::Status NoteHolders(
      const std::vector<RemoteVariableStore::ReplacedServer>& returned)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // How long the workers took for so many closures.
  absl::Duration TimeOfClosures(int64_t count) const;
  void Announce(
      const RollbackPoint& point,
      const std::vector<RemoteVariableStore::ReplacedServer>& returned)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveUp(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the snapshot has been published as `prefix`.
  //   kAborted  training was rolled back after the snapshot
  absl::Status Written(const UnsavedSnapshot& unsaved, absl::string_view prefix)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::string> NamesOf(
      const std::vector<RemoteVariableStore::ReplacedServer>& servers) const;

  bool MayWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return has_changed_ || stopping_;
  }
  bool IsSettled() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !is_recovering_ || stopping_;
  }
  bool IsAnnounced() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return generation_ == announced_generation_ || stopping_;
  }
  bool CallsNoHandler() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !is_calling_handler_;
  }
  bool HasBegunToRecover() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_recovering_ || pending_.has_value() || stopping_;
  }

  const Options options_;
  const Parts parts_;
  RollbackPoints rollback_points_;

  mutable absl::Mutex mutex_;
  bool has_changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_recovering_ ABSL_GUARDED_BY(mutex_) = false;
  // True if a save at once was postponed. Used by the thread of SaveIfDue().
  bool has_postponed_save_ = false;
  // As is_recovering_, readable without the lock.
  std::atomic<bool> recovering_{false};
  absl::Time suspended_at_;  // Used by the thread only.
  int64_t recovery_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last generation whose rollback has been announced, or has failed.
  uint64_t announced_generation_ ABSL_GUARDED_BY(mutex_) = 0;
  // By server: the state that has the current variables, and the process that
  // has it.
  std::vector<uint64_t> state_ids_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> holders_ ABSL_GUARDED_BY(mutex_);
  // By server: the index of the ps task of that process.
  std::vector<int> serving_tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t restored_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<std::any()> progress_source_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, SnapshotParticipant*> loops_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_loop_id_ ABSL_GUARDED_BY(mutex_) = 1;
  Handler handler_ ABSL_GUARDED_BY(mutex_);
  // From the decision to call the handler until it has returned.
  bool is_calling_handler_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Pending> pending_ ABSL_GUARDED_BY(mutex_);

  RecoverySaver saver_;  // Uses the members above.

  std::thread thread_;  // Constant after construction.
};

}  // namespace muster

#endif  // COORDINATOR_SERVER_RECOVERY_H_
