#include "common/learn/strategy/synchronous/leaf_lockstep.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/runtime/replica_link.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/pack_memory.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Replicas on threads; `leaf_counts` has the number of leaves of each.
class Group {
 public:
  explicit Group(const std::vector<int>& leaf_counts,
                 absl::Duration timeout = absl::Seconds(60))
      : communicators_(
            CreateLocalGroup(static_cast<int>(leaf_counts.size())).value()) {
    Leaves leaves{.count_of_rank = leaf_counts};
    for (const int count : leaf_counts) leaves.count += count;
    for (const auto& communicator : communicators_) {
      lockstep_.push_back(std::make_unique<LeafLockstep>(
          LeafLockstep::Options{.communicator = communicator.get(),
                                .leaves = leaves,
                                .timeout = timeout}));
    }
  }

  // Calls work(link) for all leaves of these replicas. Returns the status of
  // each replica.
  std::vector<absl::Status> Run(
      absl::FunctionRef<absl::Status(ReplicaLink&)> work,
      std::vector<int> replicas) {
    std::vector<absl::Status> statuses(replicas.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < replicas.size(); ++i) {
      threads.emplace_back([&, i] {
        LeafLockstep& own = *lockstep_[replicas[i]];
        statuses[i] = own.Run([&](int leaf) { return work(*own.link(leaf)); });
        // The owner of a group aborts it after an error.
        if (!statuses[i].ok()) communicators_[replicas[i]]->Abort(statuses[i]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
  std::vector<absl::Status> Run(
      absl::FunctionRef<absl::Status(ReplicaLink&)> work) {
    std::vector<int> all;
    for (size_t i = 0; i < lockstep_.size(); ++i) {
      all.push_back(static_cast<int>(i));
    }
    return Run(work, all);
  }

 private:
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<LeafLockstep>> lockstep_;
};

// Matches if every replica gets this error.
testing::Matcher<std::vector<absl::Status>> EachIs(absl::StatusCode code,
                                                   const std::string& text) {
  return Each(StatusIs(code, HasSubstr(text)));
}

const std::vector<std::vector<int>> kDivisions = {
    {5}, {1, 4}, {3, 2}, {2, 2, 1}, {1, 1, 1, 1, 1}};

TEST(LeafLockstepTest, ReducesInTheOrderOfTheLeaves) {
  // In float32, 1e8 + 1 - 1e8 + 1 + 1 from the first to the last.
  const std::vector<float> values = {1e8f, 1, -1e8f, 1, 1};
  for (const std::vector<int>& division : kDivisions) {
    Group group(division);
    for (int step = 0; step < 10; ++step) {
      EXPECT_THAT(group.Run([&](ReplicaLink& link) -> absl::Status {
        EXPECT_EQ(link.replica_count(), 5);
        const float own = values[link.replica_id()];
        for (const auto& [op, wanted] :
             {std::pair(ReduceOp::kSum, 2.0f), std::pair(ReduceOp::kMean, 0.4f),
              std::pair(ReduceOp::kMin, -1e8f),
              std::pair(ReduceOp::kMax, 1e8f)}) {
          Tensor value = Tensor::Full(DType::kFloat32, {3}, own);
          RETURN_IF_ERROR(link.AllReduce(op, &value, "x"));
          EXPECT_THAT(value.flat<float>(), Each(wanted));
        }
        return absl::OkStatus();
      }),
                  Each(IsOk()));
    }
  }
}

TEST(LeafLockstepTest, GathersUnevenContributionsInTheOrderOfTheLeaves) {
  for (const std::vector<int>& division : kDivisions) {
    Group group(division);
    EXPECT_THAT(group.Run([&](ReplicaLink& link) -> absl::Status {
      const int64_t id = link.replica_id();
      Tensor gathered(DType::kInt64, {7});
      RETURN_IF_ERROR(link.AllGather(
          Tensor::Full(DType::kInt64, {id == 3 ? 0 : id % 2 + 1}, id),
          {1, 2, 1, 0, 1}, &gathered, "x"));
      EXPECT_THAT(gathered.flat<int64_t>().subspan(0, 5),
                  ElementsAre(0, 1, 1, 2, 4));
      // An empty contribution of every leaf.
      Tensor nothing(DType::kInt64, {0});
      return link.AllGather(nothing, {0, 0, 0, 0, 0}, &nothing, "nothing");
    }),
                Each(IsOk()));
  }
}

TEST(LeafLockstepTest, LeavesOfAReplicaRunOneAtATimeInOrder) {
  Group group({4});
  std::vector<int> order;
  EXPECT_THAT(group.Run([&](ReplicaLink& link) -> absl::Status {
    for (int i = 0; i < 2; ++i) {
      order.push_back(link.replica_id());
      Tensor value = Tensor::Scalar<float>(1);
      RETURN_IF_ERROR(link.AllReduce(ReduceOp::kSum, &value, "x"));
    }
    order.push_back(link.replica_id());
    return absl::OkStatus();
  }),
              Each(IsOk()));
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3));
}

TEST(LeafLockstepTest, AnErrorOfOneLeafEndsAllAndIsFinal) {
  for (const int failing : {0, 2, 4}) {
    Group group({3, 2});
    const auto work = [&](ReplicaLink& link) -> absl::Status {
      Tensor value = Tensor::Scalar<float>(1);
      RETURN_IF_ERROR(link.AllReduce(ReduceOp::kSum, &value, "x"));
      if (link.replica_id() == failing) return absl::DataLossError("broken");
      return link.AllReduce(ReduceOp::kSum, &value, "y");
    };
    for (int run = 0; run < 2; ++run) {
      const std::vector<absl::Status> statuses = group.Run(work);
      const int replica = failing < 3 ? 0 : 1;
      EXPECT_THAT(statuses[replica],
                  StatusIs(absl::StatusCode::kDataLoss, "broken"));
      // The error of every collective; it does not depend on which thread of
      // the replica computes.
      EXPECT_THAT(statuses[1 - replica],
                  StatusIs(absl::StatusCode::kUnavailable,
                           HasSubstr(absl::StrCat("of 'y': rank ", replica,
                                                  " gave up: broken"))));
    }
  }
}

TEST(LeafLockstepTest, AReplicaThatIsMissingIsNamed) {
  Group group({2, 2}, absl::Milliseconds(50));
  EXPECT_THAT(
      group.Run(
          [&](ReplicaLink& link) -> absl::Status {
            Tensor value = Tensor::Scalar<float>(1);
            return link.AllReduce(ReduceOp::kSum, &value, "loss/AllReduce");
          },
          {0}),
      ElementsAre(StatusIs(absl::StatusCode::kDeadlineExceeded,
                           AllOf(HasSubstr("'loss/AllReduce'"),
                                 HasSubstr("rank 1 has not arrived")))));
}

TEST(LeafLockstepTest, LeavesThatCallDifferentCollectivesAreNamed) {
  Group values({2});
  EXPECT_THAT(values.Run([](ReplicaLink& link) -> absl::Status {
    Tensor value(DType::kFloat32, {1 + link.replica_id()});
    return link.AllReduce(ReduceOp::kSum, &value, "x");
  }),
              EachIs(absl::StatusCode::kInvalidArgument,
                     "0 calls \"x\" (sum of 1 float32) and 1 calls \"x\" (sum "
                     "of 2 float32)"));
  for (const int early : {0, 1}) {
    Group group({2});
    EXPECT_THAT(group.Run([&](ReplicaLink& link) -> absl::Status {
      if (link.replica_id() == early) return absl::OkStatus();
      Tensor value = Tensor::Scalar<float>(1);
      return link.AllReduce(ReduceOp::kSum, &value, "x");
    }),
                EachIs(absl::StatusCode::kInternal, "has ended its step"));
  }
  Group short_of({2});
  EXPECT_THAT(short_of.Run([](ReplicaLink& link) -> absl::Status {
    Tensor gathered(DType::kFloat32, {4});
    return link.AllGather(Tensor::Scalar<float>(1), {1, 3}, &gathered, "x");
  }),
              EachIs(absl::StatusCode::kInvalidArgument,
                     "micro-batch 1 contributes 1 elements to the collective "
                     "\"x\"; expected 3"));
}

TEST(LeafLockstepTest, UnsupportedReductionsAreRefused) {
  Group group({2});
  EXPECT_THAT(group.Run([](ReplicaLink& link) -> absl::Status {
    Tensor value(DType::kBool, {1});
    return link.AllReduce(ReduceOp::kSum, &value, "x");
  }),
              Each(StatusIs(absl::StatusCode::kUnimplemented)));
}

}  // namespace
}  // namespace muster
