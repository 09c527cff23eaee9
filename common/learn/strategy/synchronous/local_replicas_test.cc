#include "common/learn/strategy/synchronous/local_replicas.h"

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/cross_device/cross_device_ops.h"
#include "common/net/collectives/nccl/fake/fake_gpus.h"
#include "common/net/collectives/nccl/nccl_api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kNccl = CommunicationImplementation::kNccl;

// Runs an all-reduce of ones on every replica.
absl::Status Sum(ReplicaGroup& group) {
  const ReplicaGroup::Communicators communicators = group.communicators();
  return group.Run([&](int replica) {
    Tensor ones(DType::kFloat32, {100});
    for (float& value : ones.mutable_flat<float>()) value = 1;
    const absl::Status status = communicators[replica]->AllReduce(
        ReduceOp::kSum, SpanOf(ones), {"gradients", absl::Minutes(1)});
    if (status.ok()) {
      EXPECT_THAT(ones.flat<float>(), Each(static_cast<float>(group.size())));
    }
    return status;
  });
}

TEST(LocalReplicasTest, ReplicasOnGpusReduceOverNcclWhereItIsAskedFor) {
  FakeGpus gpus(2);
  auto group = MakeLocalReplicas(
      2, {.implementation = kNccl,
          .transports = {.devices = {gpus.device(0), gpus.device(1)},
                         .nccl = &gpus.nccl().api()}});
  ASSERT_OK(group);
  EXPECT_EQ((*group)->communicators()[1]->transport(), "NCCL 2.28.9");
  EXPECT_OK(Sum(**group));
  // After a failure of NCCL the group is recreated with another generation.
  gpus.nccl().FailCollective(nccl::kRemoteError);
  EXPECT_THAT(Sum(**group),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gradients")));
  ASSERT_OK_AND_ASSIGN(const bool is_new, (*group)->Renew());
  EXPECT_TRUE(is_new);
  EXPECT_EQ((*group)->communicators()[0]->generation(), 2u);
  EXPECT_OK(Sum(**group));
}

TEST(LocalReplicasTest, NcclIsRefusedNamingWhatIsMissing) {
  EXPECT_THAT(MakeLocalReplicas(2, {.implementation = kNccl}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("rank 0 computes on a CPU"),
                             HasSubstr("use RING or AUTO"))));
  FakeGpus gpus(1);
  EXPECT_THAT(
      MakeLocalReplicas(
          2, {.implementation = kNccl,
              .transports = {.devices = {gpus.device(0), gpus.device(0)},
                             .nccl = &gpus.nccl().api()}}),
      StatusIs(absl::StatusCode::kUnimplemented,
               HasSubstr("ranks 0 and 1 share GPU-")));
}

// Returns the transport of replicas on two GPUs if NCCL is installed.
std::string TransportOf(LocalCommunication communication) {
  FakeGpus gpus(2);
  communication.transports = {.devices = {gpus.device(0), gpus.device(1)},
                              .nccl = &gpus.nccl().api()};
  const auto group = MakeLocalReplicas(2, communication);
  if (!group.ok()) return group.status().ToString();
  EXPECT_OK(Sum(**group));
  return (*group)->communicators()[0]->transport();
}

TEST(LocalReplicasTest, AutoChoosesNcclForGradientsOnGpusOnly) {
  EXPECT_EQ(TransportOf({}), "NCCL 2.28.9");
  EXPECT_THAT(TransportOf({.gradients_on_host = true}),
              AllOf(Not(HasSubstr("NCCL")), Not(HasSubstr("GPU"))));
  EXPECT_EQ(TransportOf({.implementation = CommunicationImplementation::kRing}),
            "memory of the GPUs");
}

TEST(LocalReplicasTest, CrossDeviceOpsSayWhereGpusReduce) {
  EXPECT_EQ(TransportOf({.ops = NcclAllReduce().value()}), "NCCL 2.28.9");
  EXPECT_EQ(TransportOf({.ops = ReductionToOneDevice()}), "memory of the GPUs");
  EXPECT_EQ(TransportOf({.ops = HierarchicalCopyAllReduce().value()}),
            "memory of the GPUs");
  EXPECT_THAT(
      TransportOf({.implementation = kNccl, .ops = ReductionToOneDevice()}),
      AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("ReductionToOneDevice")));
}

TEST(LocalReplicasTest, AutoReducesInTheMemoryOfAGpuThatReplicasShare) {
  FakeGpus gpus(1);
  ASSERT_OK_AND_ASSIGN(
      const auto group,
      MakeLocalReplicas(
          2, {.transports = {.devices = {gpus.device(0), gpus.device(0)},
                             .nccl = &gpus.nccl().api()}}));
  EXPECT_EQ(group->communicators()[1]->transport(), "memory of the GPUs");
  EXPECT_OK(Sum(*group));
}

TEST(LocalReplicasTest, AutoGoesOnWithoutAnNcclThatDoesNotConnect) {
  FakeGpus gpus(2);
  gpus.nccl().Fail("ncclGetUniqueId", nccl::kSystemError);
  ASSERT_OK_AND_ASSIGN(
      const auto group,
      MakeLocalReplicas(
          2, {.transports = {.devices = {gpus.device(0), gpus.device(1)},
                             .nccl = &gpus.nccl().api()}}));
  EXPECT_EQ(group->communicators()[0]->transport(), "memory of the GPUs");
}

TEST(LocalReplicasTest, AutoReducesInTheMemoryOfTheProcess) {
  auto group = MakeLocalReplicas(3);
  ASSERT_OK(group);
  EXPECT_THAT((*group)->communicators()[0]->transport(),
              Not(HasSubstr("NCCL")));
  EXPECT_OK(Sum(**group));
}

}  // namespace
}  // namespace muster
