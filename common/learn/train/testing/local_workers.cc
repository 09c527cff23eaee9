#include "common/learn/train/testing/local_workers.h"

#include <thread>
#include <utility>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gtest/gtest.h"

namespace muster {

void RunLocalWorkers(
    int worker_count, int replicas_per_worker,
    SynchronousStrategy::Options options,
    const std::function<void(int worker, SynchronousStrategy&)>& work) {
  auto communicators =
      CreateLocalGroup(worker_count * replicas_per_worker).value();
  options.name = "multi_worker_mirrored";
  std::vector<std::thread> threads;
  for (int worker = 0; worker < worker_count; ++worker) {
    threads.emplace_back([&, worker] {
      ReplicaGroup::Communicators own;
      for (int i = 0; i < replicas_per_worker; ++i) {
        own.push_back(
            std::move(communicators[worker * replicas_per_worker + i]));
      }
      auto group = ReplicaGroup::Create(
                       std::move(own),
                       {.worker_index = worker, .worker_count = worker_count})
                       .value();
      ASSERT_OK(SynchronousStrategy::CheckOptions(*group, options));
      SynchronousStrategy strategy(std::move(group), options);
      work(worker, strategy);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace muster
