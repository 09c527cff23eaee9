#include "common/learn/strategy/replica/testing/test_strategy.h"

#include <optional>
#include <utility>

#include "common/core/base/check.h"
#include "common/learn/strategy/synchronous/local_replicas.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/shm/shared_memory_group.h"

namespace muster {

TestStrategy::TestStrategy(std::unique_ptr<ReplicaGroup> group,
                           ReplicaOperations::Options options)
    : ReplicaOperations(group.get(), &variables_, nullptr, std::move(options)),
      group_(std::move(group)),
      variables_(group_.get(), /*shares_variables=*/false, kTestTimeout),
      agreement_(group_.get(), kTestTimeout, /*shared_seed=*/std::nullopt) {}

std::unique_ptr<TestStrategy> MakeTestStrategy(
    int replica_count, ReplicaOperations::Options options) {
  auto group = MakeLocalReplicas(replica_count);
  MUSTER_CHECK(group.ok());
  return std::make_unique<TestStrategy>(*std::move(group), std::move(options));
}

std::vector<std::unique_ptr<TestStrategy>> MakeTestWorkers(
    int worker_count, int replicas_per_worker) {
  auto communicators = CreateLocalGroup(worker_count * replicas_per_worker);
  MUSTER_CHECK(communicators.ok());
  std::vector<std::unique_ptr<TestStrategy>> workers;
  for (int worker = 0; worker < worker_count; ++worker) {
    ReplicaGroup::Communicators own;
    for (int r = 0; r < replicas_per_worker; ++r) {
      own.push_back(
          std::move((*communicators)[worker * replicas_per_worker + r]));
    }
    auto group = ReplicaGroup::Create(
        std::move(own), {.worker_index = worker, .worker_count = worker_count});
    MUSTER_CHECK(group.ok());
    workers.push_back(std::make_unique<TestStrategy>(*std::move(group)));
  }
  return workers;
}

}  // namespace muster
