#include "common/learn/strategy/synchronous/mirrored_variable_store.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/variables/variable_state.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/storage/disk.h"
#include "common/learn/strategy/synchronous/local_replicas.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/tensor.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

proto::VariableSpec Spec(const std::string& name, double value) {
  proto::VariableSpec spec;
  spec.set_name(name);
  spec.set_dtype(proto::DT_FLOAT);
  spec.mutable_shape()->add_dim(2);
  spec.mutable_initializer()->mutable_constant()->set_value(value);
  return spec;
}

proto::VariableSpec OnRead(const std::string& name,
                           proto::VariableAggregation aggregation) {
  proto::VariableSpec spec = Spec(name, 0);
  spec.set_synchronization(proto::SYNCHRONIZATION_ON_READ);
  spec.set_aggregation(aggregation);
  return spec;
}

Tensor Pair(float a, float b) { return Tensor::FromValues<float>({2}, {a, b}); }

std::vector<float> Flat(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

class MirroredVariableStoreTest : public ::testing::Test {
 protected:
  const std::unique_ptr<ReplicaGroup> group_ = MakeLocalReplicas(2).value();
  MirroredVariableStore store_{group_.get(), /*shares_variables=*/false,
                               kTimeout};
};

TEST_F(MirroredVariableStoreTest, OperationsApplyToAllCopies) {
  ASSERT_OK(store_.Create(Spec("v", 3)));
  EXPECT_THAT(Flat(store_.copy(1).Read("v").value()), ElementsAre(3, 3));
  ASSERT_OK(store_.Assign("v", Pair(1, 2)));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Flat(store_.copy(i).Read("v").value()), ElementsAre(1, 2));
  }
  EXPECT_EQ(store_.List().size(), 1u);

  const std::vector<VariableUse> uses = {{.name = "v", .is_updated = true}};
  ASSERT_OK_AND_ASSIGN(const auto session, store_.OpenSession(uses));
  ASSERT_OK(session->Begin(0));
  ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, Pair(10, 10), Tensor()));
  ASSERT_OK(session->Commit());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Flat(store_.copy(i).Read("v").value()), ElementsAre(11, 12));
  }
}

TEST_F(MirroredVariableStoreTest, CopiesThatAreReadTogetherAreAggregated) {
  const struct {
    proto::VariableAggregation aggregation;
    std::vector<float> wanted;
  } cases[] = {{proto::AGGREGATION_SUM, {5, 50}},
               {proto::AGGREGATION_MEAN, {2.5, 25}},
               {proto::AGGREGATION_ONLY_FIRST_REPLICA, {1, 10}}};
  for (const auto& [aggregation, wanted] : cases) {
    const std::string name = proto::VariableAggregation_Name(aggregation);
    ASSERT_OK(store_.Create(OnRead(name, aggregation)));
    ASSERT_OK(store_.copy(0).Assign(name, Pair(1, 10)));
    ASSERT_OK(store_.copy(1).Assign(name, Pair(4, 40)));
    EXPECT_EQ(Flat(store_.Read(name).value()), wanted) << name;
  }
}

TEST_F(MirroredVariableStoreTest, SummedVariablesAreAssignedInShares) {
  ASSERT_OK(store_.Create(OnRead("sum", proto::AGGREGATION_SUM)));
  ASSERT_OK(store_.Create(OnRead("mean", proto::AGGREGATION_MEAN)));
  ASSERT_OK(store_.Assign("sum", Pair(6, 8)));
  ASSERT_OK(store_.Assign("mean", Pair(6, 8)));
  EXPECT_THAT(Flat(store_.copy(1).Read("sum").value()), ElementsAre(3, 4));
  EXPECT_THAT(Flat(store_.Read("sum").value()), ElementsAre(6, 8));
  EXPECT_THAT(Flat(store_.Read("mean").value()), ElementsAre(6, 8));
}

TEST_F(MirroredVariableStoreTest, RejectsUpdatesThatWouldDiverge) {
  proto::VariableSpec spec = OnRead("v", proto::AGGREGATION_NONE);
  ASSERT_OK(store_.Create(spec));
  EXPECT_THAT(store_.Read("v"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("set its aggregation")));
  spec.set_trainable(true);
  spec.set_name("w");
  EXPECT_THAT(store_.Create(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("trainable and synchronized ON_READ")));
  spec.set_synchronization(proto::SYNCHRONIZATION_NONE);
  EXPECT_THAT(store_.Create(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("synchronization NONE")));
}

TEST(SharedVariableStoreTest, ThereIsOneCopy) {
  const auto group = MakeLocalReplicas(2).value();
  MirroredVariableStore store(group.get(), /*shares_variables=*/true, kTimeout);
  ASSERT_OK(store.Create(OnRead("v", proto::AGGREGATION_SUM)));
  EXPECT_EQ(&store.copy(0), &store.copy(1));
  ASSERT_OK(store.Assign("v", Pair(1, 2)));
  EXPECT_THAT(Flat(store.Read("v").value()), ElementsAre(1, 2));
}

// Runs two workers, each on a thread.
void RunWorkers(const std::function<void(int, MirroredVariableStore&)>& work) {
  auto communicators = CreateLocalGroup(2).value();
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&, worker] {
      ReplicaGroup::Communicators own;
      own.push_back(std::move(communicators[worker]));
      const auto group =
          ReplicaGroup::Create(std::move(own),
                               {.worker_index = worker, .worker_count = 2})
              .value();
      MirroredVariableStore store(group.get(), /*shares_variables=*/false,
                                  kTimeout);
      work(worker, store);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(WorkersVariableStoreTest, AllGetTheVariablesOfRankZero) {
  RunWorkers([](int worker, MirroredVariableStore& store) {
    proto::Optimizer adam;
    adam.mutable_adam()->set_learning_rate(0.1);
    ASSERT_OK(store.SetOptimizer(adam));
    ASSERT_OK(store.Create(Spec("v", worker)));
    ASSERT_OK(store.Create(Spec("other", worker + 7)));
    if (worker == 0) {
      // Simulates a restore from a file that only the first worker has.
      const auto slot = [](float value) {
        return Tensor::FromValues<float>({2}, {value, value});
      };
      ASSERT_OK(store.copy(0).RestoreState(
          "v", {.value = Pair(0, 0),
                .slots = {{"momentum", slot(0.5f)}, {"velocity", slot(0.25f)}},
                .update_count = 5}));
    }
    ASSERT_OK(store.Synchronize());
    EXPECT_THAT(Flat(store.Read("v").value()), ElementsAre(0, 0));
    EXPECT_THAT(Flat(store.Read("other").value()), ElementsAre(7, 7));
    EXPECT_EQ(store.UpdateCount("v").value(), 5);
    EXPECT_EQ(store.UpdateCount("other").value(), 0);
    ASSERT_OK_AND_ASSIGN(const VariableState state,
                         store.copy(0).ReadState("v"));
    const std::vector<VariableState::Slot>& slots = state.slots;
    ASSERT_EQ(slots.size(), 2u);
    EXPECT_EQ(slots[1].name, "velocity");
    EXPECT_THAT(Flat(slots[1].value), ElementsAre(0.25f, 0.25f));

    // A change on one worker reaches all workers.
    if (worker == 0) {
      ASSERT_OK(store.Assign("v", Pair(8, 9)));
    }
    ASSERT_OK(store.Synchronize());
    EXPECT_THAT(Flat(store.Read("v").value()), ElementsAre(8, 9));
  });
}

TEST(WorkersVariableStoreTest, OnlyTheFirstNeedsTheCheckpoint) {
  const std::string folder = testing::TempDir();
  const std::string prefix = absl::StrCat(folder, "/workers");
  RunWorkers([&](int worker, MirroredVariableStore& store) {
    ASSERT_OK(store.Create(Spec("v", 1)));
    ASSERT_OK(store.Create(OnRead("seen", proto::AGGREGATION_SUM)));
    ASSERT_OK(store.copy(0).Assign("seen", Pair(worker + 1, 1)));
    // Slots may have other shapes than their variable.
    ASSERT_OK(store.copy(0).RestoreState(
        "v",
        {.value = Pair(1, 1),
         .slots = {{"column", Tensor::FromValues<float>({1, 3}, {4, 5, 6})},
                   {"momentum", Pair(2, 3)},
                   {"row", Tensor::Scalar<float>(7)}},
         .update_count = 5}));
    ASSERT_OK(store.SaveShards(prefix, 1));
    if (worker == 0) {
      ASSERT_OK(PublishTensorBundle(Disk::Real(), prefix, 1));
    }
  });
  RunWorkers([&](int worker, MirroredVariableStore& store) {
    ASSERT_OK(store.Create(Spec("v", 7)));
    ASSERT_OK(store.Create(OnRead("seen", proto::AGGREGATION_SUM)));
    const std::string nowhere = absl::StrCat(folder, "/nowhere");
    ASSERT_OK(store.Restore(worker == 0 ? prefix : nowhere, false));
    EXPECT_THAT(Flat(store.Read("v").value()), ElementsAre(1, 1));
    EXPECT_THAT(Flat(store.Read("seen").value()), ElementsAre(3, 2));
    EXPECT_EQ(store.UpdateCount("v").value(), 5);
    ASSERT_OK_AND_ASSIGN(const VariableState state,
                         store.copy(0).ReadState("v"));
    ASSERT_EQ(state.slots.size(), 3u);
    EXPECT_EQ(state.slots[0].value.shape(), Shape({1, 3}));
    EXPECT_THAT(Flat(state.slots[0].value), ElementsAre(4, 5, 6));
    EXPECT_EQ(state.slots[1].name, "momentum");
    EXPECT_THAT(Flat(state.slots[1].value), ElementsAre(2, 3));
    EXPECT_EQ(state.slots[2].value.shape(), Shape());
    EXPECT_THAT(Flat(state.slots[2].value), ElementsAre(7));
    // A read error on the first worker is returned on all.
    EXPECT_THAT(store.Restore(worker == 0 ? nowhere : prefix, false),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
  });
}

TEST(WorkersVariableStoreTest, ReadingTogetherAggregatesOverWorkers) {
  RunWorkers([](int worker, MirroredVariableStore& store) {
    ASSERT_OK(store.Create(OnRead("v", proto::AGGREGATION_SUM)));
    ASSERT_OK(store.copy(0).Assign("v", Pair(worker + 1, 1)));
    EXPECT_THAT(Flat(store.Read("v").value()), ElementsAre(3, 2));
  });
}

}  // namespace
}  // namespace muster
