#ifndef COORDINATOR_TRAINING_JOURNAL_H_
#define COORDINATOR_TRAINING_JOURNAL_H_

#include <any>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/checkpoints/training_state.h"
#include "coordinator/closure_id_reservation.h"
#include "coordinator/journal/adoption.h"
#include "coordinator/journal/coordinator_journal.h"
#include "coordinator/server_copies.h"
#include "proto/coordinator_journal.pb.h"

namespace muster {

class ClosureDispatcher;

// Records the training of a job, so that a later coordinator of the job can
// continue it with the workers and servers that still run, and continues that
// of an earlier one. docs/design/coordinator_return.md has the protocol.
//
// A successor runs the same program again. Up to its first training loop the
// program repeats what the first coordinator did, and changes no variables.
// The loop then continues at the recorded place. It runs the closures from
// there on under the ids that they had: servers that have applied a closure
// acknowledge it and change nothing.
//
// What cannot be repeated is an obstacle: assignments to variables during
// training, and closures of custom loops. An obstacle ends with the next place
// of a training loop. A successor that finds one has the tasks restarted, and
// training resumes from a backup.
//
// Thread-safe.
class TrainingJournal {
 public:
  struct Options {
    // The folder of the journal; empty for no journal.
    std::string folder;
    // Time between two records of progress. At most this much training is
    // computed again.
    absl::Duration progress_interval = absl::Seconds(1);
    Disk* disk = Disk::Real();     // Borrowed.
    Clock* clock = Clock::Real();  // Borrowed.
  };

  // What a coordinator takes over from its predecessor when it starts.
  struct Identity {
    std::string job_id;
    uint64_t coordinator_epoch = 1;
    uint64_t seed = 0;
    uint64_t generation = 0;
    ClosureIdReservation::Options closure_ids;
    // The limit of the low-water mark until Begin(). Servers must not forget
    // closures that are run again.
    uint64_t low_water_mark_max = std::numeric_limits<uint64_t>::max();
    // By server, as in proto::JournalJob; empty without a predecessor.
    std::vector<uint64_t> server_state_ids;
    ServerCopies::Record copies;
  };

  // The place of a loop between two closures.
  struct Place {
    uint64_t graph_fingerprint = 0;
    // The number of steps of each closure, except the last one of a run.
    int steps_per_closure = 1;
    // Steps since the beginning of the pass, whose results were taken.
    int64_t steps_into_pass = 0;
    // As proto::JournalTraining.open_round_gradients.
    int open_round_gradients = 0;
  };

  // Begins the next coordinator epoch. `identity` is that of a new job, and is
  // kept if there is no journal or no predecessor. Without a journal this
  // object does nothing. Logs a folder on a disk that cannot keep a journal.
  //   errors as CoordinatorJournal::Open() and ReadPredecessor()
  static absl::StatusOr<std::unique_ptr<TrainingJournal>> Open(
      const Options& options, Identity identity);

  // Returns an object that keeps no journal.
  static std::unique_ptr<TrainingJournal> None();

  // True if a successor could continue this job.
  bool is_kept() const { return journal_ != nullptr; }
  const Identity& identity() const { return identity_; }
  // Returns the seed that all coordinators of the job have in common; unset
  // without a journal.
  std::optional<uint64_t> shared_seed() const {
    return is_kept() ? std::optional(identity_.seed) : std::nullopt;
  }

  // Decides how this coordinator begins. Call it once the workers and servers
  // refuse an earlier coordinator, with all servers by index, and Begin() after
  // kBegin or kContinue.
  absl::StatusOr<Adoption> Decide(
      const std::vector<ServerDescription>& servers);

  // Records which tasks serve, and which may take over. Before Begin(), that
  // call does.
  absl::Status NoteCopies(const ServerCopies::Record& copies)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Records with which servers this coordinator begins. `newest_step_id` is the
  // highest step that one of them remembers. `dispatcher` is borrowed, and gets
  // the low-water mark.
  absl::Status Begin(const std::vector<ServerDescription>& servers,
                     uint64_t newest_step_id, ClosureDispatcher* dispatcher)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // True from Begin() until the first loop has reached the place from which it
  // continues. Until then the program must not change variables.
  bool is_continuing() const ABSL_LOCKS_EXCLUDED(mutex_);
  // True while steps are run that an earlier coordinator may have run, on some
  // servers only. A snapshot would not be one between two steps.
  bool is_repeating() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the state of training to continue from, on the first call while
  // is_continuing().
  std::optional<TrainingState> TakeProgress() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the place from which this coordinator continues; unset unless
  // is_continuing().
  std::optional<Place> ContinuedPlace() const ABSL_LOCKS_EXCLUDED(mutex_);

  // As TrainingRecovery::SetProgressSource().
  void SetProgressSource(std::function<std::any()> source)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that servers now have this generation, and these states.
  absl::Status NoteServers(const std::vector<uint64_t>& state_ids,
                           uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the number of shards that each server holds, for the next places.
  void NoteShardCounts(std::vector<int> counts) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records the place at which a loop is about to schedule a closure, with no
  // closure scheduled. Blocks until the record is durable. The next closure
  // then has the id of the first closure after the place.
  //   kFailedPrecondition  the loop is not the one of the earlier coordinator;
  //                        exit code kRestartMe
  //   others               the journal cannot be written
  absl::Status BeginRun(const Place& place) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records a place within that run in the background, if the last record is
  // older than progress_interval. `next_closure_id` is the first closure after
  // the place. Blocks if so many closures were run since the last record that
  // servers should not remember more.
  //   any  the journal cannot be written
  absl::Status NoteProgress(const Place& place, uint64_t next_closure_id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that training is complete, with the variables as they are.
  absl::Status NoteTrained() ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that `what` happens, which a successor cannot repeat: "closures of
  // a custom loop". Blocks until the record is durable.
  //   kFailedPrecondition  is_continuing(); exit code kRestartMe
  absl::Status NoteObstacle(absl::string_view what) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns OK if a successor could continue training now.
  //   kFailedPrecondition  says why it could not
  absl::Status CheckContinuable() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that this coordinator ends the job.
  void NoteEnd(int exit_code, absl::string_view reason);

 private:
  TrainingJournal(const Options& options, Identity identity,
                  std::unique_ptr<CoordinatorJournal> journal);

  // Returns the record of a place, or an obstacle if there can be none. Leaves
  // out the history if `is_progress`, which the last record has.
  proto::JournalRecord RecordOf(const Place& place, uint64_t next_closure_id,
                                bool is_progress) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds what has happened to tasks, and only how much that is if the newest
  // record has it.
  void AddTimeline(proto::JournalRecord* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the tensors of callbacks. Returns false if they are too large.
  bool AddTensors(const TrainingState& state, proto::JournalTraining* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends is_continuing(), if it is true: the next closure has the id of the
  // first one after the recorded place.
  absl::Status EndContinuing(const Place& place) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Write(const proto::JournalRecord& change);

  const Options options_;
  const Identity identity_;

  // Held while a change of job_ is made and written, so that the newest one is
  // written last. Acquired before mutex_.
  absl::Mutex job_mutex_;
  mutable absl::Mutex mutex_;
  ClosureDispatcher* dispatcher_ ABSL_GUARDED_BY(mutex_) = nullptr;
  proto::JournalJob job_ ABSL_GUARDED_BY(mutex_);
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;
  // The record of the earlier coordinator, while is_continuing().
  std::optional<proto::JournalRecord> continued_ ABSL_GUARDED_BY(mutex_);
  bool has_given_progress_ ABSL_GUARDED_BY(mutex_) = false;
  // Servers have applied closures up to this one for an earlier coordinator; 0
  // for none, and once all of them have finished here.
  uint64_t repeated_id_max_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<std::any()> progress_source_ ABSL_GUARDED_BY(mutex_);
  int fit_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<int> shard_counts_ ABSL_GUARDED_BY(mutex_);
  // The place of the last run; unset before the first.
  std::optional<Place> place_ ABSL_GUARDED_BY(mutex_);
  // True if the newest record is an obstacle.
  bool has_obstacle_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time last_record_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // The first closure after the newest durable place.
  uint64_t durable_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // The number of events in the newest durable record; -1 before the first.
  int64_t durable_event_count_ ABSL_GUARDED_BY(mutex_) = -1;
  // The callback tensors of the newest record with tensors.
  std::vector<Tensor> recorded_tensors_ ABSL_GUARDED_BY(mutex_);

  // Null: none. Its thread uses the members above.
  const std::unique_ptr<CoordinatorJournal> journal_;
};

}  // namespace muster

#endif  // COORDINATOR_TRAINING_JOURNAL_H_
