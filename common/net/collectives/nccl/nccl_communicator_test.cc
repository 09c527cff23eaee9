#include "common/net/collectives/nccl/nccl_communicator.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/message/testing/memory_lane.h"
#include "common/net/collectives/nccl/fake/fake_gpus.h"
#include "common/net/collectives/nccl/nccl_thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Tests how a group handles failures of NCCL.
namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr absl::Duration kShort = absl::Milliseconds(300);
constexpr absl::Duration kAtOnce = absl::Seconds(20);
constexpr int kSize = 3;

using Group = std::vector<std::unique_ptr<DeviceCommunicator>>;

// Never destroyed: one of the tests leaves a thread behind.
FakeGpus& Gpus() {
  static auto* const gpus = new FakeGpus(kSize);
  return *gpus;
}

Tensor Ones() {
  Tensor ones(DType::kFloat32, Shape({3000}));
  for (float& value : ones.mutable_flat<float>()) value = 1;
  return ones;
}

// All-reduces ones on each rank and returns the statuses. Checks that calls
// that fail leave the caller's buffer unchanged.
std::vector<absl::Status> AllReduce(const Group& group,
                                    absl::Duration timeout) {
  std::vector<absl::Status> statuses(group.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Tensor buffer = Ones();
      statuses[rank] = group[rank]->AllReduce(ReduceOp::kSum, SpanOf(buffer),
                                              {"gradients", timeout});
      const float expected =
          statuses[rank].ok() ? static_cast<float>(group.size()) : 1;
      EXPECT_THAT(buffer.flat<float>(), Each(expected));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

Group MakeGroup() {
  absl::StatusOr<Group> group = Gpus().MakeGroup(kSize);
  EXPECT_OK(group);
  return *std::move(group);
}

TEST(NcclCommunicatorTest, SaysItsVersionAndDevice) {
  const Group group = MakeGroup();
  EXPECT_EQ(group[1]->transport(), "NCCL 2.28.9");
  EXPECT_EQ(&group[1]->device(), Gpus().device(1));
  EXPECT_EQ(group[1]->generation(), 5u);
}

TEST(NcclCommunicatorTest, AnAsynchronousErrorEndsTheGroupAndIsQuoted) {
  const Group group = MakeGroup();
  EXPECT_THAT(AllReduce(group, kLong), Each(IsOk()));
  Gpus().nccl().FailCollective(nccl::kRemoteError);
  const absl::Time start_time = Clock::Real()->Now();
  EXPECT_THAT(AllReduce(group, kLong),
              Each(StatusIs(absl::StatusCode::kUnavailable,
                            AllOf(HasSubstr("all-reduce of gradients"),
                                  HasSubstr("NCCL says"),
                                  HasSubstr("remote process exited")))));
  EXPECT_LT(Clock::Real()->Now() - start_time, kAtOnce);
  EXPECT_THAT(AllReduce(group, kLong),
              Each(StatusIs(absl::StatusCode::kUnavailable)));
}

TEST(NcclCommunicatorTest, ACollectiveThatHangsExpires) {
  const Group group = MakeGroup();
  Gpus().nccl().FailCollective(nccl::kSuccess);
  const std::vector<absl::Status> statuses = AllReduce(group, kShort);
  const auto names_it = HasSubstr("all-reduce of gradients");
  EXPECT_THAT(
      statuses,
      Each(AnyOf(StatusIs(absl::StatusCode::kDeadlineExceeded, names_it),
                 StatusIs(absl::StatusCode::kUnavailable, names_it))));
  EXPECT_THAT(statuses,
              testing::Contains(StatusIs(
                  absl::StatusCode::kDeadlineExceeded,
                  HasSubstr("ncclAllReduce has not finished on gpu:"))));
}

TEST(NcclCommunicatorTest, AnAbortEndsACollectiveThatHangs) {
  const Group group = MakeGroup();
  Gpus().nccl().FailCollective(nccl::kSuccess);
  const int64_t launches = Gpus().nccl().counts()["ncclAllReduce"];
  std::thread other([&] {
    EXPECT_TRUE(AwaitTrue([&] {
      return Gpus().nccl().counts()["ncclAllReduce"] >= launches + kSize;
    })) << "not all ranks have called";
    for (const auto& communicator : group) {
      communicator->Abort(absl::CancelledError("the job is over"));
    }
  });
  const absl::Time start_time = Clock::Real()->Now();
  const std::vector<absl::Status> statuses = AllReduce(group, kLong);
  EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kCancelled,
                                    HasSubstr("the job is over")));
  // The others may first learn from NCCL that rank 0 is gone.
  EXPECT_THAT(statuses,
              Each(AnyOf(StatusIs(absl::StatusCode::kCancelled),
                         StatusIs(absl::StatusCode::kUnavailable,
                                  HasSubstr("all-reduce of gradients")))));
  EXPECT_LT(Clock::Real()->Now() - start_time, kAtOnce);
  other.join();
}

TEST(NcclCommunicatorTest, ALaunchThatFailsNamesItsCollective) {
  const Group group = MakeGroup();
  Gpus().nccl().Fail("ncclAllReduce", nccl::kInternalError);
  const std::vector<absl::Status> statuses = AllReduce(group, kLong);
  EXPECT_THAT(statuses, Each(testing::Not(IsOk())));
  EXPECT_THAT(statuses, testing::Contains(StatusIs(
                            absl::StatusCode::kInternal,
                            AllOf(HasSubstr("all-reduce of gradients"),
                                  HasSubstr("ncclAllReduce on gpu:")))));
}

TEST(NcclCommunicatorTest, NothingIsLaunchedWhereRanksDisagree) {
  const Group group = MakeGroup();
  const int64_t launches = Gpus().nccl().counts()["ncclAllReduce"];
  std::vector<absl::Status> statuses(kSize);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank] {
      Tensor buffer = Ones();
      statuses[rank] =
          group[rank]->AllReduce(rank == 1 ? ReduceOp::kMax : ReduceOp::kSum,
                                 SpanOf(buffer), {"gradients", kLong});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("rank 1 is in all-reduce "
                                                "(max) of 3000 x float32"))));
  EXPECT_EQ(Gpus().nccl().counts()["ncclAllReduce"], launches);
}

TEST(NcclCommunicatorTest, AStartedCollectiveIsDoneOnlyWithoutAnError) {
  const Group group = MakeGroup();
  Gpus().nccl().FailCollective(nccl::kUnhandledCudaError);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank] {
      DeviceCommunicator& communicator = *group[rank];
      Device& device = communicator.device();
      auto memory = *device.memory().Allocate(400, {.what = "pack"});
      auto ready = *device.CreateEvent();
      auto done = *device.CreateEvent();
      // The error may occur before all ranks have started.
      absl::Status status = communicator.StartAllReduce(
          ReduceOp::kSum, {DType::kFloat32, 100, memory->data()}, *ready,
          done.get(), {"gradients", kLong});
      if (status.ok()) status = communicator.Await();
      EXPECT_FALSE(status.ok());
      // The stream continues, so that work that waits for `done` is not
      // blocked.
      EXPECT_OK(AwaitEvent(&device.context(), *done,
                           Clock::Real()->Now() + kLong, "the all-reduce"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NcclCommunicatorTest, AConnectionThatFailsIsQuoted) {
  Gpus().nccl().Fail("ncclCommInitRankConfig", nccl::kSystemError);
  EXPECT_THAT(Gpus().MakeGroup(1),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("ncclCommInitRankConfig on gpu:0"),
                             HasSubstr("NCCL says"))));
}

TEST(NcclCommunicatorTest, AConnectionThatTakesTooLongIsGivenUp) {
  Gpus().nccl().set_stalls_init(true);
  EXPECT_THAT(Gpus().MakeGroup(2, kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("ncclCommInitRankConfig is still in "
                                 "progress")));
  Gpus().nccl().set_stalls_init(false);
}

TEST(NcclCommunicatorTest, ARankThatDoesNotCallIsNamed) {
  auto lanes = MakeMemoryLanes(3);
  auto control = MakeMessageCommunicator({0, 5, std::move(lanes[0]), {}});
  ASSERT_OK(control);
  auto other = MakeMessageCommunicator({1, 5, std::move(lanes[1]), {}});
  ASSERT_OK(other);
  EXPECT_THAT(
      ConnectNccl(&Gpus().nccl().api(),
                  {.device = Gpus().device(0), .control = *std::move(control)},
                  Clock::Real()->Now() + kShort),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("ranks 1, 2 have not arrived")));
}

TEST(NcclCommunicatorTest, IdsOfDifferentGroupsAreRefused) {
  auto lanes = MakeMemoryLanes(2);
  std::vector<absl::Status> statuses(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto control =
          *MakeMessageCommunicator({rank, 5, std::move(lanes[rank]), {}});
      NcclGroup group{.device = Gpus().device(rank),
                      .control = std::move(control)};
      group.id.bytes[0] = static_cast<char>('a' + rank);
      statuses[rank] = ConnectNccl(&Gpus().nccl().api(), std::move(group),
                                   Clock::Real()->Now() + kLong)
                           .status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("ids of different groups"))));
}

TEST(NcclThreadTest, AnAbortThatDoesNotReturnDoesNotKeepItsCaller) {
  NcclThread::Options options{.api = &Gpus().nccl().api(),
                              .device = Gpus().device(0),
                              .end_timeout = kShort};
  nccl::UniqueId id;
  ASSERT_EQ(options.api->ncclGetUniqueId(&id), nccl::kSuccess);
  options.id = id;
  auto thread = NcclThread::Connect(options, Clock::Real()->Now() + kLong);
  ASSERT_OK(thread);
  Gpus().nccl().set_stalls_aborts(true);
  (*thread)->Abort(absl::CancelledError("the job is over"));
  EXPECT_THAT((*thread)->Await(), StatusIs(absl::StatusCode::kCancelled));
  const absl::Time start_time = Clock::Real()->Now();
  *thread = nullptr;
  EXPECT_LT(Clock::Real()->Now() - start_time, kAtOnce);
  Gpus().nccl().set_stalls_aborts(false);
  // The process can form the next group.
  EXPECT_THAT(AllReduce(MakeGroup(), kLong), Each(IsOk()));
}

TEST(FakeNcclTest, ACommunicatorOfAnotherThreadIsRefused) {
  const nccl::Api& api = Gpus().nccl().api();
  nccl::UniqueId id;
  ASSERT_EQ(api.ncclGetUniqueId(&id), nccl::kSuccess);
  nccl::Config config;
  nccl::Comm* comm = nullptr;
  ASSERT_EQ(api.ncclCommInitRankConfig(&comm, 1, id, 0, &config),
            nccl::kInProgress);
  std::thread([&] {
    nccl::Result result = nccl::kSuccess;
    EXPECT_EQ(api.ncclCommGetAsyncError(comm, &result), nccl::kInvalidUsage);
  }).join();
  EXPECT_EQ(api.ncclCommAbort(comm), nccl::kSuccess);
  EXPECT_EQ(api.ncclCommAbort(comm), nccl::kInvalidUsage);
}

}  // namespace
}  // namespace muster
