// Real processes, one a rank, each with a simulated GPU, of which one is killed
// or stopped.
#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/clock.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/conformance/rank_processes.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/nccl/fake/fake_gpus.h"
#include "common/net/collectives/nccl/nccl_communicator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSize = 3;
constexpr int64_t kElementCount = 20000;

using Lanes = std::vector<std::unique_ptr<Lane>>;

// What a rank has in its process.
struct RankState {
  explicit RankState(bool reports_lost_ranks)
      : gpus(kSize, {.reports_lost_ranks = reports_lost_ranks}) {}

  absl::Status Connect(int rank, Lanes lanes) {
    constexpr absl::Duration kTimeout = RankProcesses::kUndisturbedTimeout;
    auto control = MakeMessageCommunicator({rank, 1, std::move(lanes), {}});
    NcclGroup group{.device = gpus.device(rank),
                    .control = *std::move(control)};
    if (rank == 0) {
      MUSTER_CHECK(gpus.nccl().api().ncclGetUniqueId(&group.id) ==
                   nccl::kSuccess);
    }
    RETURN_IF_ERROR(group.control->Broadcast(
        {DType::kUint8, sizeof(group.id.bytes), group.id.bytes}, 0,
        {"the id of NCCL", kTimeout}));
    ASSIGN_OR_RETURN(communicator,
                     ConnectNccl(&gpus.nccl().api(), std::move(group),
                                 Clock::Real()->Now() + kTimeout));
    return absl::OkStatus();
  }

  FakeGpus gpus;
  std::unique_ptr<DeviceCommunicator> communicator;
};

// Starts ranks that all-reduce other values in each call. Unless it
// `reports_lost_ranks`, NCCL waits for them, and calls expire soon.
std::unique_ptr<RankProcesses> Start(const std::string& victim_faults,
                                     bool reports_lost_ranks) {
  const auto prepare = [=](int rank, Lanes lanes) -> RankProcesses::Call {
    const auto state = std::make_shared<RankState>(reports_lost_ranks);
    const absl::Status connected = state->Connect(rank, std::move(lanes));
    return [=](int call, absl::Duration timeout) -> std::string {
      if (!connected.ok()) return connected.ToString();
      Tensor buffer(DType::kInt32, Shape({kElementCount}));
      for (int32_t& value : buffer.mutable_flat<int32_t>()) value = rank + call;
      const absl::Status status = state->communicator->AllReduce(
          ReduceOp::kSum, SpanOf(buffer), {"gradients", timeout});
      const int32_t first = buffer.flat<int32_t>()[0];
      if (!status.ok()) {
        return first == rank + call ? status.ToString()
                                    : "applied a failed sum";
      }
      const int32_t expected = kSize * call + kSize * (kSize - 1) / 2;
      return first == expected ? "" : "a wrong sum";
    };
  };
  return std::make_unique<RankProcesses>(
      RankProcesses::Options{
          .size = kSize, .victim = 2, .victim_faults = victim_faults},
      prepare,
      reports_lost_ranks ? absl::InfiniteDuration() : absl::Seconds(1));
}

testing::Matcher<std::string> NamesTheVictim(const char* code) {
  return AllOf(HasSubstr("all-reduce of gradients"), HasSubstr("rank 2"),
               HasSubstr(code));
}

class KilledNcclRankTest : public testing::TestWithParam<const char*> {};

TEST_P(KilledNcclRankTest, IsNamedByAllSurvivorsAtOnce) {
  Start(GetParam(), /*reports_lost_ranks=*/true)
      ->ExpectSurvivorsSay(NamesTheVictim("UNAVAILABLE"));
}

// After the agreement, only NCCL knows that a rank is missing, and says
// nothing.
TEST_P(KilledNcclRankTest, IsNamedWhenTheCallExpiresIfNcclWaitsForIt) {
  Start(GetParam(), /*reports_lost_ranks=*/false)
      ->ExpectSurvivorsSay(NamesTheVictim("UNAVAILABLE"));
}

INSTANTIATE_TEST_SUITE_P(
    Phases, KilledNcclRankTest,
    testing::Values("nccl.begin@call=4", "nccl.begin@call=9",
                    "nccl.agreed@call=4", "nccl.agreed@call=9",
                    "nccl.launched@call=4"),
    [](const auto& info) {
      std::string name = info.param;
      std::erase_if(name, [](char c) { return !isalnum(c); });
      return name;
    });

TEST(StoppedNcclRankTest, IsNamedWhenTheCallExpires) {
  const auto ranks = Start("never@call=1", /*reports_lost_ranks=*/false);
  ASSERT_TRUE(ranks->AwaitVictimAtWork());
  ranks->SendToVictim(SIGSTOP);
  ranks->ExpectSurvivorsSay(NamesTheVictim("DEADLINE_EXCEEDED"));
}

}  // namespace
}  // namespace muster
