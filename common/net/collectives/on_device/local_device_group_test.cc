#include "common/net/collectives/on_device/local_device_group.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/collectives/tensor_span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kRanks = 3;
constexpr int64_t kElements = 5000;
constexpr absl::Duration kTimeout = absl::Seconds(60);

// Ranks on logical devices of one GPU.
class LocalDeviceGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Device*> devices;
    for (int i = 0; i < kRanks; ++i) {
      ASSERT_OK_AND_ASSIGN(
          devices_.emplace_back(),
          Device::Create(
              &machine_.driver(),
              {.name = absl::StrCat("gpu:", i),
               .memory = {.limit_bytes = 16 << 20, .piece_bytes = 1 << 20}}));
      devices.push_back(devices_.back().get());
      ASSERT_OK_AND_ASSIGN(streams_.emplace_back(),
                           devices_.back()->CreateStream());
      ASSERT_OK_AND_ASSIGN(ready_.emplace_back(),
                           devices_.back()->CreateEvent());
      ASSERT_OK_AND_ASSIGN(done_.emplace_back(),
                           devices_.back()->CreateEvent());
      ASSERT_OK_AND_ASSIGN(buffers_.emplace_back(),
                           devices_.back()->memory().Allocate(
                               kElements * sizeof(float), {"pack", "test"}));
    }
    ASSERT_OK_AND_ASSIGN(auto host, CreateLocalGroup(kRanks));
    ASSERT_OK_AND_ASSIGN(group_,
                         CreateLocalDeviceGroup(devices, std::move(host),
                                                DeviceReduction::kByParts));
  }

  // Fills the buffer of `rank` with `value`.
  absl::Status Write(int rank, float value) {
    const std::vector<float> values(kElements, value);
    RETURN_IF_ERROR(streams_[rank]->Copy(values.data(), buffers_[rank]->data(),
                                         buffers_[rank]->size_bytes()));
    return streams_[rank]->Record(ready_[rank].get());
  }
  TensorSpan SpanOfBuffer(int rank) const {
    return {DType::kFloat32, kElements, buffers_[rank]->data()};
  }
  absl::Status AllReduce(int rank, absl::Duration timeout = kTimeout) {
    RETURN_IF_ERROR(Write(rank, rank + 1));
    return group_[rank]->StartAllReduce(ReduceOp::kSum, SpanOfBuffer(rank),
                                        *ready_[rank], done_[rank].get(),
                                        {"a pack", timeout});
  }
  std::vector<absl::Status> OnAllRanks(
      const std::function<absl::Status(int rank)>& work) {
    std::vector<absl::Status> statuses(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] { statuses[rank] = work(rank); });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
  std::vector<absl::Status> AllReduceOnAllRanks() {
    return OnAllRanks([&](int rank) { return AllReduce(rank); });
  }

  absl::StatusOr<std::vector<float>> Read(int rank) {
    std::vector<float> values(kElements);
    DeviceStream& stream = *streams_[rank];
    RETURN_IF_ERROR(stream.Wait(*done_[rank]));
    RETURN_IF_ERROR(stream.Copy(buffers_[rank]->data(), values.data(),
                                buffers_[rank]->size_bytes()));
    RETURN_IF_ERROR(stream.Drain(Clock::Real()->Now() + kTimeout, "a test"));
    return values;
  }

  int64_t launch_count() const {
    const std::map<std::string, int64_t> counts = machine_.counts();
    const auto found = counts.find("cuLaunchKernelEx");
    return found == counts.end() ? 0 : found->second;
  }

  SimulatedMachine machine_{{}};
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<DeviceStream>> streams_;
  std::vector<std::unique_ptr<Event>> ready_, done_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<std::unique_ptr<DeviceCommunicator>> group_;
};

TEST_F(LocalDeviceGroupTest, OneKernelReducesForAllRanksOfAGpu) {
  for (int step = 1; step <= 3; ++step) {
    EXPECT_THAT(AllReduceOnAllRanks(), Each(IsOk()));
    EXPECT_EQ(launch_count(), step);
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_OK_AND_ASSIGN(const std::vector<float> got, Read(rank));
      EXPECT_THAT(got, Each(1 + 2 + 3)) << "rank " << rank;
      EXPECT_OK(group_[rank]->Await());
    }
  }
}

// The order holds even if `ready` does not wait for the `done` of the
// collective before.
TEST_F(LocalDeviceGroupTest, CollectivesOfOneBufferFollowEachOther) {
  constexpr int kRounds = 4;
  const CollectiveCall call = {"a pack", kTimeout};
  const auto run = [&](int rank) -> absl::Status {
    DeviceCommunicator& communicator = *group_[rank];
    const TensorSpan buffer = SpanOfBuffer(rank);
    const Event& ready = *ready_[rank];
    Event* const done = done_[rank].get();
    std::vector<int64_t> counts;
    for (int r = 0; r < kRanks; ++r) {
      const auto [begin, end] = Communicator::PartOf(kElements, r, kRanks);
      counts.push_back(end - begin);
    }
    RETURN_IF_ERROR(Write(rank, rank + 1));
    for (int round = 0; round < kRounds; ++round) {
      RETURN_IF_ERROR(communicator.StartReduceScatter(ReduceOp::kSum, buffer,
                                                      ready, done, call));
      RETURN_IF_ERROR(
          communicator.StartAllGather(counts, buffer, ready, done, call));
      RETURN_IF_ERROR(communicator.StartAllReduce(ReduceOp::kSum, buffer, ready,
                                                  done, call));
    }
    return absl::OkStatus();
  };
  EXPECT_THAT(OnAllRanks(run), Each(IsOk()));
  float wanted = 1 + 2 + 3;
  for (int sum = 1; sum < 2 * kRounds; ++sum) wanted *= kRanks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_OK_AND_ASSIGN(const std::vector<float> got, Read(rank));
    EXPECT_THAT(got, Each(wanted)) << "rank " << rank;
  }
}

// Ranks that have timed out may have freed their memory.
TEST_F(LocalDeviceGroupTest, ALateRankDoesNotAccessMemoryOfOthers) {
  std::vector<std::thread> threads;
  for (const int rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      EXPECT_THAT(AllReduce(rank, absl::Milliseconds(50)),
                  StatusIs(absl::StatusCode::kDeadlineExceeded,
                           // Also names rank 1 if that rank arrives after the
                           // timeout of rank 0.
                           ContainsRegex("2 ha(s|ve) not arrived")));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(AllReduce(2), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(launch_count(), 0);
}

TEST_F(LocalDeviceGroupTest, AnErrorOfTheDriverEndsTheCallOfEveryRank) {
  machine_.Fail("cuLaunchKernelEx", driver::kInvalidValue);
  EXPECT_THAT(AllReduceOnAllRanks(),
              Each(StatusIs(absl::StatusCode::kInternal,
                            ::testing::AllOf(HasSubstr("all-reduce of a pack"),
                                             HasSubstr("reduce_float32")))));
  EXPECT_THAT(AllReduceOnAllRanks(),
              Each(StatusIs(absl::StatusCode::kInternal)));
}

}  // namespace
}  // namespace muster
