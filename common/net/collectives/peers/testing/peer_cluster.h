#ifndef COMMON_NET_COLLECTIVES_PEERS_TESTING_PEER_CLUSTER_H_
#define COMMON_NET_COLLECTIVES_PEERS_TESTING_PEER_CLUSTER_H_

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/tensor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/peers/admission.h"
#include "common/net/collectives/peers/peer_group.h"
#include "common/net/process/port_reservation.h"
#include "common/net/rpc/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// A synchronous cluster whose tasks are all in this process, over real gRPC.
namespace muster {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

// The lines that a task reports. Tests can wait for a line.
class Lines {
 public:
  void Add(absl::string_view line) {
    absl::MutexLock lock(&mutex_);
    absl::StrAppend(&text_, line, "\n");
  }
  // Returns true if a line with `text` is reported in time.
  bool Await(const std::string& text) {
    absl::MutexLock lock(&mutex_);
    const auto is_reported = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return absl::StrContains(text_, text);
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&is_reported), kPatience);
  }
  std::string text() {
    absl::MutexLock lock(&mutex_);
    return text_;
  }

 private:
  absl::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

using Groups = std::vector<std::unique_ptr<PeerGroup>>;

class PeerGroupTest : public testing::Test {
 protected:
  // Makes a cluster of workers, and a chief if `has_chief`, on free ports.
  void MakeCluster(int worker_count, bool has_chief = false) {
    std::map<TaskType, std::vector<std::string>> lists;
    if (has_chief) lists[TaskType::kChief] = {NewAddress()};
    for (int i = 0; i < worker_count; ++i) {
      lists[TaskType::kWorker].push_back(NewAddress());
    }
    cluster_ = ClusterSpec::FromLists(lists).value();
    lines_ = std::vector<Lines>(worker_count + (has_chief ? 1 : 0));
  }

  std::string NewAddress() {
    ports_.push_back(PortReservation::Create().value());
    return absl::StrCat("localhost:", ports_.back()->port());
  }

  PeerGroup::Options OptionsOf(int rank) {
    const TaskId task = GroupTasks(cluster_)[rank];
    PeerGroup::Options options;
    options.config.cluster = cluster_;
    options.config.task = task;
    options.identity = {std::string(TaskTypeName(task.type)), task.index,
                        RandomIdentity()};
    options.listen_address = cluster_.Address(task).value();
    options.startup_timeout = kPatience;
    options.heartbeat_interval = absl::Milliseconds(100);
    // No task is stopped here, and the machine may be busy.
    options.heartbeat_timeout = absl::Seconds(20);
    options.digest.Add("job file", "epochs: 3\n");
    options.report = [this, rank](absl::string_view line) {
      lines_[rank].Add(line);
    };
    return options;
  }

  std::vector<PeerGroup::Options> AllOptions() {
    std::vector<PeerGroup::Options> all;
    for (size_t rank = 0; rank < GroupTasks(cluster_).size(); ++rank) {
      all.push_back(OptionsOf(static_cast<int>(rank)));
    }
    return all;
  }

  static absl::StatusOr<std::unique_ptr<PeerGroup>> Join(
      const PeerGroup::Options& options) {
    return PeerGroup::Join(options, Network::Grpc(), Clock::Real());
  }

  // All tasks join concurrently. Groups stay alive until every task has a
  // result.
  static std::vector<absl::StatusOr<std::unique_ptr<PeerGroup>>> TryJoinAll(
      const std::vector<PeerGroup::Options>& all) {
    std::vector<absl::StatusOr<std::unique_ptr<PeerGroup>>> results(all.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < all.size(); ++i) {
      threads.emplace_back([&, i] { results[i] = Join(all[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  static Groups JoinAll(const std::vector<PeerGroup::Options>& all) {
    Groups groups;
    for (auto& result : TryJoinAll(all)) {
      EXPECT_OK(result);
      if (result.ok()) groups.push_back(*std::move(result));
    }
    return groups;
  }

  Groups FormCluster(int worker_count) {
    MakeCluster(worker_count);
    return JoinAll(AllOptions());
  }

  // Rank r contributes r + 1. Every rank must get the sum.
  static void ExpectSums(const Groups& groups, int replicas_per_task = 1) {
    const int size = static_cast<int>(groups.size()) * replicas_per_task;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        Communicator* const communicator =
            groups[rank / replicas_per_task]->communicator(rank %
                                                           replicas_per_task);
        EXPECT_EQ(communicator->rank(), rank);
        EXPECT_EQ(communicator->size(), size);
        Tensor tensor(DType::kFloat32, {1000});
        for (float& value : tensor.mutable_flat<float>()) value = rank + 1;
        EXPECT_OK(communicator->AllReduce(ReduceOp::kSum, SpanOf(tensor),
                                          {.name = "gradients"}));
        EXPECT_THAT(tensor.flat<float>(), testing::Each(size * (size + 1) / 2));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static void LeaveAll(const Groups& groups) {
    std::vector<std::thread> threads;
    for (const auto& group : groups) {
      threads.emplace_back(
          [&group] { EXPECT_OK(group->Leave(absl::OkStatus(), kPatience)); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static absl::Status AllReduce(PeerGroup& group) {
    Tensor tensor(DType::kFloat32, {1000});
    return group.communicator(0)->AllReduce(ReduceOp::kSum, SpanOf(tensor),
                                            {.name = "dense/kernel"});
  }

  std::vector<std::unique_ptr<PortReservation>> ports_;
  ClusterSpec cluster_;
  std::vector<Lines> lines_;  // By rank.
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_TESTING_PEER_CLUSTER_H_
