#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_GROUP_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_GROUP_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/synchronous/group_operation.h"
#include "common/learn/strategy/synchronous/replica_threads.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// This process' replicas among all synchronous replicas, with a communicator
// and a thread for each.
//
// A group with Options::reform survives the loss of other workers: Complete()
// forms it again with the workers that are left, and repeats the operation that
// was interrupted. The last message of a lost worker may have reached some
// workers and not others, so workers differ by at most one completed operation.
// Those that have not completed it get its result, and the variables if it
// changed them, from one that has.
//
// Thread-safe; Run() calls run one at a time. Complete() is called by one
// thread.
class ReplicaGroup {
 public:
  // By local replica. Every worker has the same number of replicas. Replica i
  // of worker w has rank w * replicas per worker + i.
  using Communicators = std::vector<std::shared_ptr<Communicator>>;

  struct Membership {
    Communicators communicators;
    int worker_index = 0;
    int worker_count = 1;
  };

  struct Options {
    int worker_index = 0;
    int worker_count = 1;
    // Creates a new group after an error, which ends the communicators. If
    // null, the error is final. Only for a group within this process.
    std::function<absl::StatusOr<Communicators>()> renew = nullptr;
    // Forms the group of the workers that are left after a loss. Returns the
    // error that ended the group if it was no loss. Null: every error is final.
    std::function<absl::StatusOr<Membership>()> reform = nullptr;
    // Time limit for each exchange between the workers that are left.
    absl::Duration timeout = absl::Seconds(300);
  };

  // What a worker has that must be equal on all workers between operations.
  class State {
   public:
    virtual ~State() = default;
    // Replaces the state of all workers by that of the replica `rank`. A
    // collective.
    virtual absl::Status CopyFrom(int rank) = 0;
    // Returns a fingerprint that is equal for equal states, and 0 if the states
    // of workers may differ at present.
    virtual absl::StatusOr<uint64_t> Fingerprint() = 0;
  };

  // While it lives, `release` is called before the group is formed again; it
  // must destroy everything that uses the communicators. May outlive the group.
  class User {
   public:
    User(ReplicaGroup* group, std::function<void()> release);
    ~User();
    User(const User&) = delete;
    User& operator=(const User&) = delete;

   private:
    friend class ReplicaGroup;
    struct Registry {
      absl::Mutex mutex;
      std::list<std::function<void()>> releases ABSL_GUARDED_BY(mutex);
    };

    const std::shared_ptr<Registry> registry_;
    std::list<std::function<void()>>::iterator entry_;
  };

  //   kInvalidArgument  ranks and sizes do not match this numbering
  static absl::StatusOr<std::unique_ptr<ReplicaGroup>> Create(
      Communicators communicators, Options options);

  // Returns the group of a process that joins others which already train.
  // `results` are those of their operations before training. Until Change() has
  // succeeded, Complete() returns them one after another, and nothing else can
  // run. This worker is not worker 0.
  //   kInvalidArgument  there is no local replica, or no Options::reform
  static absl::StatusOr<std::unique_ptr<ReplicaGroup>> CreateJoining(
      int local_count, std::vector<std::string> results, Options options);

  int local_count() const { return threads_.replica_count(); }
  int size() const { return local_count() * worker_count(); }
  int worker_index() const ABSL_LOCKS_EXCLUDED(mutex_);
  int worker_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  InputPlacement placement() const {
    return {worker_count(), worker_index(), local_count()};
  }

  // Counts how often the group was formed again. The communicators, the number
  // of workers and the index of this one change with it.
  int64_t view() const ABSL_LOCKS_EXCLUDED(mutex_);

  Communicators communicators() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls work(replica) on the thread of each local replica. Returns the first
  // error. The error ends the communicators, so that no replica waits for the
  // one that failed.
  absl::Status Run(absl::FunctionRef<absl::Status(int replica)> work)
      ABSL_LOCKS_EXCLUDED(run_mutex_, mutex_);

  // True if the group survives a loss. Then all that workers do together must
  // be operations of Complete().
  bool survives_losses() const { return options_.reform != nullptr; }

  // Sets the state that an operation changes; null: none. Borrowed.
  void SetState(State* state) { state_ = state; }

  // Runs an operation. If the group loses a worker, forms it again and repeats
  // the operation, or takes over its result.
  //   errors of the operation and of Options::reform
  //   kDataLoss   workers have different variables after a loss; names one
  //   kInternal   workers differ by more than one operation
  absl::Status Complete(GroupOperation& operation)
      ABSL_LOCKS_EXCLUDED(run_mutex_, mutex_);

  bool is_joining() const { return is_joining_; }
  // The rank whose state others got when the group was last formed again.
  int newest_rank() const { return newest_rank_; }

  // Replaces the group by the one that `form` returns, which may have more
  // workers. Workers that join get the variables of the others. Called on all
  // workers between two operations, on the thread of Complete().
  //   errors of `form`, and as Complete()
  absl::Status Change(absl::FunctionRef<absl::StatusOr<Membership>()> form)
      ABSL_LOCKS_EXCLUDED(run_mutex_, mutex_);

  // Returns the results of all operations so far, and ends recording them. No
  // value if a process cannot repeat them, or if they are larger than 64 MiB.
  std::optional<std::vector<std::string>> TakeRecord();

  // Ends the current collectives and all later ones with `status`, on every
  // worker.
  void Abort(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Recreates the group within this process if it has ended. Returns true if it
  // did.
  //   errors  the error that ended the group, if it cannot be recreated
  absl::StatusOr<bool> Renew() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ReplicaGroup(Communicators communicators, Options options);

  static absl::Status Check(const Communicators& communicators,
                            int worker_index, int worker_count);
  // Forms the group again after `operation` has failed. Returns the result of
  // the operation if another worker has completed it.
  absl::StatusOr<std::optional<std::string>> Recover(
      const GroupOperation& operation, const absl::Status& failure)
      ABSL_LOCKS_EXCLUDED(run_mutex_, mutex_);
  absl::Status Reform(absl::FunctionRef<absl::StatusOr<Membership>()> form)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteCompleted(const GroupOperation& operation, std::string result);
  // `is_change` is true between two operations, in Change().
  absl::StatusOr<std::optional<std::string>> Equalize(bool is_change,
                                                      bool ended_halfway)
      ABSL_LOCKS_EXCLUDED(run_mutex_, mutex_);
  // Sends the result of the last operation from the replica `root` to all, and
  // returns it. Sends the variables, too, if the operation changed them or
  // `copies_variables`.
  absl::StatusOr<std::string> CopyFrom(int root, bool copies_variables)
      ABSL_LOCKS_EXCLUDED(run_mutex_, mutex_);
  absl::Status CheckStatesAreEqual(bool ended_halfway)
      ABSL_LOCKS_EXCLUDED(run_mutex_, mutex_);
  // Returns the numbers of all ranks.
  absl::StatusOr<std::vector<int64_t>> GatherNumbers(absl::string_view what,
                                                     int64_t own)
      ABSL_LOCKS_EXCLUDED(run_mutex_, mutex_);

  const Options options_;
  const std::shared_ptr<User::Registry> users_ =
      std::make_shared<User::Registry>();
  State* state_ = nullptr;
  absl::Mutex run_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  ReplicaThreads threads_;

  // Used by the thread of Complete(). The number of completed operations, and
  // the last one's result and whether it changed variables.
  int64_t completed_count_ = 0;
  std::string last_result_;
  bool last_changed_variables_ = false;
  // The results of all operations; no value if not all can be repeated, or once
  // they are taken. While this process joins: the results to repeat, of which
  // `completed_count_` are repeated.
  std::optional<std::vector<std::string>> record_;
  int64_t record_bytes_ = 0;
  bool is_joining_ = false;
  int newest_rank_ = 0;

  mutable absl::Mutex mutex_;
  Membership members_ ABSL_GUARDED_BY(mutex_);
  int64_t view_ ABSL_GUARDED_BY(mutex_) = 0;
  // The error that ended the group.
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_GROUP_H_
