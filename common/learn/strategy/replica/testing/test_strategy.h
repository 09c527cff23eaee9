#ifndef COMMON_LEARN_STRATEGY_REPLICA_TESTING_TEST_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_REPLICA_TESTING_TEST_STRATEGY_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/compute/graph/graph.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/replica/replica_operations.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/synchronous/group_agreement.h"
#include "common/learn/strategy/synchronous/mirrored_variable_store.h"
#include "common/learn/strategy/synchronous/replica_group.h"

namespace muster {

inline constexpr absl::Duration kTestTimeout = absl::Seconds(60);

// A strategy with the replicas of one worker, for tests of custom loops.
class TestStrategy final : public Strategy, public ReplicaOperations {
 public:
  explicit TestStrategy(std::unique_ptr<ReplicaGroup> group,
                        ReplicaOperations::Options options = {});

  absl::string_view name() const override { return "test"; }
  int num_replicas_in_sync() const override { return group_->size(); }
  bool draws_from_copies() const override { return false; }
  MirroredVariableStore& variables() override { return variables_; }
  absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(const Graph&,
                                                       const Dataset&,
                                                       LoopKind) override {
    return absl::UnimplementedError("loops are the test's own");
  }
  const WorkerAgreement& agreement() const override { return agreement_; }
  TrainingRecovery* recovery() override { return nullptr; }
  StrategyReport Report() const override { return {}; }

 private:
  const std::unique_ptr<ReplicaGroup> group_;
  MirroredVariableStore variables_;
  const GroupAgreement agreement_;
};

// Returns a strategy with `replica_count` replicas in this process.
std::unique_ptr<TestStrategy> MakeTestStrategy(
    int replica_count, ReplicaOperations::Options options = {});

// Returns the strategies of workers that are threads of the test, with the same
// number of replicas each.
std::vector<std::unique_ptr<TestStrategy>> MakeTestWorkers(
    int worker_count, int replicas_per_worker);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_TESTING_TEST_STRATEGY_H_
