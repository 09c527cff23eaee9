#ifndef COMMON_LEARN_STRATEGY_STRATEGIES_MULTI_WORKER_MIRRORED_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_STRATEGIES_MULTI_WORKER_MIRRORED_STRATEGY_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/learn/strategy/communication_options.h"
#include "common/learn/strategy/group_membership.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/sharded_state.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/net/collectives/peers/job_digest.h"
#include "common/net/process/task.h"

namespace muster {

class RenewableGroup;

struct MultiWorkerMirroredStrategyOptions {
  CommunicationOptions communication = {};
  // The devices of this worker's replicas: {"cpu:0", "cpu:1"}. All workers must
  // have the same number. Empty means all GPUs of the worker, or one CPU if
  // there is no GPU.
  std::vector<std::string> devices = {};
  InputOptions input = {};
  // Threads per operation of one replica; 0 means the threads of the task
  // divided by its number of replicas.
  int thread_count = 0;
  // As SynchronousStrategy::Options.
  int deterministic_micro_batches = 0;
  // What the replicas of all workers divide among themselves. Equal on all
  // workers. A single replica keeps everything.
  ShardedState sharded_state = ShardedState::kNone;
  // How long this worker waits at the end for the other workers to finish.
  absl::Duration end_timeout = absl::Minutes(10);
  // Additional settings that must be equal on all workers, for example the job.
  // A difference is an error at startup.
  std::vector<JobDigest::Section> agreed = {};
};

// Synchronous training by the workers of a cluster: the chief, if there is one,
// and all workers run the same program. Each processes its share of every
// global batch, and all have equal variables after every step.
//
//   ASSIGN_OR_RETURN(auto strategy, MultiWorkerMirroredStrategy::Create(task));
//
// If TF_CONFIG names no other task, this task is the only worker. An evaluator
// is always the only worker, and no task waits for it.
//
// The loss of a worker ends the group: training on every other worker ends with
// an error that names the lost one, and the process exits with status 138, so
// that a supervisor restarts the group. With --min_workers, the workers that
// are left form a group of their own and continue with the step that was
// interrupted. Any of them can become the chief.
//
// Equivalent to: tf.distribute.MultiWorkerMirroredStrategy.
class MultiWorkerMirroredStrategy final : public SynchronousStrategy,
                                          private GroupMembership {
 public:
  // Blocks until all workers have joined, and logs the missing ones. The group
  // ends with the task, whose flags select the transports.
  //   kInvalidArgument     the cluster has parameter servers, or an option is
  //                        out of range
  //   kDeadlineExceeded    names the missing workers and the reasons; exit
  //                        status 138
  //   kFailedPrecondition  a worker disagrees about cluster, job or settings,
  //                        or another process claims the same task
  //   kUnimplemented       NCCL is requested, and a replica lacks what it
  //                        needs; names both. Or state is sharded or losses
  //                        are survived, and a replica is on a GPU
  static absl::StatusOr<std::unique_ptr<MultiWorkerMirroredStrategy>> Create(
      Task& task, const MultiWorkerMirroredStrategyOptions& options = {});

  // Returns the single worker that Create() returns if there is no other task.
  // A `thread_count` of 0 means the number of cores of this machine.
  static absl::StatusOr<std::unique_ptr<MultiWorkerMirroredStrategy>>
  CreateAlone(const MultiWorkerMirroredStrategyOptions& options = {});

  StrategyReport Report() const override;
  // Null unless training survives losses.
  GroupMembership* membership() override;

 private:
  bool is_joining() const override;
  absl::Status NoteTrainingBegins() override;
  absl::Status Join() override;
  bool has_joiners() const override;
  absl::Status Propose() override;
  absl::Status TakeIn() override;
  absl::StatusOr<bool> MayLeave(bool wants_to_leave) override;
  absl::StatusOr<std::string> FromOthers(absl::string_view what,
                                         std::string bytes) override;

  MultiWorkerMirroredStrategy(std::shared_ptr<RenewableGroup> peers,
                              std::unique_ptr<ReplicaGroup> replicas,
                              Options options,
                              MirroredVariableStore::Copies variables);

  const std::shared_ptr<RenewableGroup> peers_;  // Null for a single worker.
  // How often training has begun. A process that joins repeats what comes
  // before the first time.
  std::atomic<int> training_count_{0};
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STRATEGIES_MULTI_WORKER_MIRRORED_STRATEGY_H_
