#ifndef COORDINATOR_SERVER_RECOVERY_H_
#define COORDINATOR_SERVER_RECOVERY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/clock.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/learn/strategy/training_recovery.h"
#include "common/learn/train/checkpoints/background_writer.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/closure_ids.h"
#include "coordinator/server_watch.h"
#include "coordinator/training_cut.h"
#include "ps/client/remote_variable_store.h"

namespace muster {

// What a loop over closures keeps with a cut, and goes back to. Called on the
// thread that takes the snapshot, or that runs AwaitRollback().
class CutParticipant {
 public:
  virtual ~CutParticipant() = default;
  virtual std::shared_ptr<const void> OnCut() = 0;
  // Null: the loop had not begun at that cut.
  virtual void OnRollback(const void* state) = 0;
};

// What a rollback has done.
struct RollbackReport {
  // To which checkpoint; empty: to the variables' first values.
  std::string checkpoint;
  // Closures that had succeeded and are undone. The first few by id.
  int64_t undone_count = 0;
  std::vector<uint64_t> undone_ids;
  // The servers that were lost.
  std::vector<std::string> servers;
};

// Brings a job back after the loss of parameter servers: waits for them, rolls
// all servers back to one moment of training, and lets training go on from
// there, with no other process restarted. docs/design/recovery.md says why this
// loses and doubles no step.
//
// Thread-safe. The thread that recovers is its own.
class ServerRecovery final : public TrainingRecovery {
 public:
  struct Options {
    // How long lost servers may stay away; zero: the first loss ends the job.
    absl::Duration return_timeout = absl::Seconds(60);
    int recovery_count_max = 100;
    absl::Duration report_interval = absl::Seconds(5);
    // For the steps under way to end before the state is frozen.
    absl::Duration drain_timeout = absl::Minutes(2);
    // Where checkpoints of the servers are kept for recovery alone; empty:
    // nowhere.
    std::string checkpoint_dir;
    absl::Duration checkpoint_interval = absl::Minutes(1);
  };

  // All borrowed. `what_it_held` tells what went with a server, for people.
  struct Parts {
    ClosureDispatcher* dispatcher = nullptr;
    ServerWatch* watch = nullptr;
    RemoteVariableStore* variables = nullptr;
    std::function<std::string(int server)> what_it_held;
    Clock* clock = nullptr;
  };

  ServerRecovery(const Options& options, Parts parts);
  ~ServerRecovery() override;

  ServerRecovery(const ServerRecovery&) = delete;
  ServerRecovery& operator=(const ServerRecovery&) = delete;

  // A server was lost, is about to end, or came back. Does not wait.
  void OnServerChange() ABSL_LOCKS_EXCLUDED(mutex_);

  // Between the loss of a server and the end of the recovery from it.
  bool is_recovering() const { return recovering_.load(); }
  int64_t recovery_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether this process holds the server's part of what is trained. Another
  // one in its place, which somebody may meet first, does not.
  bool IsHolder(int server, uint64_t incarnation) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Cuts.

  // As VariableStore::TakeSnapshot(), when no step is under way: waits for
  // those that are, and hands out no others meanwhile. Training may be rolled
  // back to it once it has been written and published.
  //   kAborted           a server is lost, or was meanwhile
  //   kDeadlineExceeded  a step does not end; names its worker
  absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot();

  // As VariableStore::Restore(); what is restored is a cut.
  absl::Status Restore(absl::string_view prefix, bool values_only);
  // Somebody has changed variables otherwise than by closures.
  void NoteAssigned() { cuts_.DropFirstValues(); }

  // Saves to checkpoint_dir when its interval has passed, while steps go on;
  // or, `at_once` or when a server waits to end, when training has done
  // something since the last cut, and waits for that. Without a checkpoint_dir,
  // has the preemption saver save for a server that waits to end. Lets such a
  // server go. A save that fails is logged and changes nothing. By one thread
  // at a time.
  void SaveIfDue(bool at_once = false) ABSL_LOCKS_EXCLUDED(mutex_);

  void SetProgressSource(std::function<std::string()> source) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void SetPreemptionSaver(std::function<absl::Status()> save) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `loop` is borrowed until it is removed.
  uint64_t AddLoop(CutParticipant* loop) ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveLoop(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Rollbacks.

  // Who is told of rollbacks when they have happened, before closures go on.
  // Then what was not done yet stays scheduled, and what was undone is the
  // caller's to schedule again. Without one, everything that was scheduled is
  // cancelled, and a failure (kAborted) is stored in the queue.
  // `handler` must not call the coordinator.
  using Handler = std::function<void(const RollbackReport&)>;
  void SetHandler(Handler handler) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::optional<Rollback>> AwaitRollback(
      const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Snapshot;

  struct Pending {
    TrainingCut cut;
    RollbackReport report;
  };

  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sees whether servers wait to end, for the next step of a loop to save what
  // they hold; where there is no loop, or nowhere to save to, lets them go.
  void NoteEnding() ABSL_LOCKS_EXCLUDED(mutex_);
  void LetGoOfEnding();
  void SaveToCheckpointDir(bool is_awaited);
  void CallPreemptionSaver() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the end of it, or leaves it to the writer.
  absl::Status Save(bool is_awaited);
  // Whether all is well again, or the job is over.
  void Recover() ABSL_LOCKS_EXCLUDED(mutex_);
  // Until every server is there. False: the job is over.
  bool AwaitServers() ABSL_LOCKS_EXCLUDED(mutex_);
  // Servers that are other processes than those that hold the state.
  std::vector<RemoteVariableStore::ReturnedServer> Returned() const
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasTrouble() const ABSL_LOCKS_EXCLUDED(mutex_);
  //   kNotFound  there is nothing to which training could be rolled back
  absl::StatusOr<TrainingCut> RollServersBack(
      const std::vector<RemoteVariableStore::ReturnedServer>& returned)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RollServersBackTo(
      const TrainingCut& cut,
      const std::vector<RemoteVariableStore::ReturnedServer>& returned)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Announce(
      const TrainingCut& cut,
      const std::vector<RemoteVariableStore::ReturnedServer>& returned)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveUp(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  //   kAborted  training was rolled back since the snapshot was taken
  absl::Status Written(const Snapshot& snapshot, absl::string_view prefix)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::string> NamesOf(
      const std::vector<RemoteVariableStore::ReturnedServer>& servers) const;

  bool MayWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return has_changed_ || stopping_;
  }
  bool IsSettled() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !is_recovering_ || stopping_;
  }
  bool HasBegunToRecover() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_recovering_ || pending_.has_value() || stopping_;
  }

  const Options options_;
  const Parts parts_;
  TrainingCuts cuts_;

  mutable absl::Mutex mutex_;
  bool has_changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_recovering_ ABSL_GUARDED_BY(mutex_) = false;
  // The same, for those who may not wait for the lock.
  std::atomic<bool> recovering_{false};
  int64_t recovery_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  // By server: the process that holds its part of the state.
  std::vector<uint64_t> holders_ ABSL_GUARDED_BY(mutex_);
  std::function<std::string()> progress_source_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status()> preemption_saver_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, CutParticipant*> loops_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_loop_id_ ABSL_GUARDED_BY(mutex_) = 1;
  Handler handler_ ABSL_GUARDED_BY(mutex_);
  std::optional<Pending> pending_ ABSL_GUARDED_BY(mutex_);

  // A server waits for the next SaveIfDue().
  std::atomic<bool> has_ending_server_{false};
  std::unique_ptr<CheckpointManager> manager_;  // Of SaveIfDue(); or null.
  BackgroundWriter writer_;                     // Uses all of the above.
  absl::Time last_save_;

  std::thread thread_;  // Constant after construction.
};

}  // namespace muster

#endif  // COORDINATOR_SERVER_RECOVERY_H_
