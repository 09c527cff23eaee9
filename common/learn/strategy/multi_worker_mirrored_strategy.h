#ifndef COMMON_LEARN_STRATEGY_MULTI_WORKER_MIRRORED_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_MULTI_WORKER_MIRRORED_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/learn/strategy/communication_options.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/synchronous/synchronous_strategy.h"
#include "common/net/collectives/peers/peer_group.h"
#include "common/net/process/task.h"

namespace muster {

struct MultiWorkerMirroredStrategyOptions {
  CommunicationOptions communication = {};
  // This worker's replicas, as many on every worker: {"cpu:0", "cpu:1"}. Empty:
  // all devices there are, which is one CPU.
  std::vector<std::string> devices = {};
  InputOptions input = {};
  // Threads that one operation of one replica may use; 0: those of the task,
  // divided by its replicas.
  int thread_count = 0;
  // As SynchronousStrategy::Options.
  int deterministic_micro_batches = 0;
  // How long to wait at the end for the others to have finished too.
  absl::Duration end_timeout = absl::Minutes(10);
  // What all workers must have alike beyond this strategy's own settings, by
  // name: the job, for example. A difference is refused at the start.
  std::vector<std::pair<std::string, std::string>> agreed = {};
};

// Synchronous training by the workers of a cluster: the chief, if there is one,
// and all workers run the same program, each on its share of every global
// batch, and end every step with the same variables.
//
//   ASSIGN_OR_RETURN(auto strategy, MultiWorkerMirroredStrategy::Create(task));
//
// Where TF_CONFIG names no other task this is one worker, and an evaluator
// always is: nobody waits for it.
//
// A worker that is lost ends the group: every survivor's training ends with an
// error that names it, and the process with status 138, so that a supervisor
// starts the group again.
//
// Equivalent to: tf.distribute.MultiWorkerMirroredStrategy.
class MultiWorkerMirroredStrategy final : public SynchronousStrategy {
 public:
  // Waits for all workers, naming the missing ones in the log. The group ends
  // with the task, whose flags say which ways the bytes may take.
  //   kInvalidArgument     the cluster has parameter servers, or an option is
  //                        out of range
  //   kDeadlineExceeded    names those who never came, and why
  //   kFailedPrecondition  a worker disagrees about cluster, job or settings,
  //                        or another process has this one's place
  //   kUnimplemented       NCCL was asked for, and there is none
  static absl::StatusOr<std::unique_ptr<MultiWorkerMirroredStrategy>> Create(
      Task& task, const MultiWorkerMirroredStrategyOptions& options = {});

  // The one worker that Create() makes where there is no other task, with
  // `thread_count` 0 for the cores of this machine.
  static absl::StatusOr<std::unique_ptr<MultiWorkerMirroredStrategy>>
  CreateAlone(const MultiWorkerMirroredStrategyOptions& options = {});

  bool is_chief() const override;
  std::optional<uint64_t> shared_seed() const override;
  StrategyReport Report() const override;

 private:
  MultiWorkerMirroredStrategy(std::shared_ptr<PeerGroup> peers,
                              std::unique_ptr<ReplicaGroup> replicas,
                              Options options);

  const std::shared_ptr<PeerGroup> peers_;  // Null for a worker alone.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_MULTI_WORKER_MIRRORED_STRATEGY_H_
