// Runs each rank in a real process with a simulated GPU, and kills or stops one
// of them. With MUSTER_TEST_GPU=real, the ranks share the first GPU of this
// machine, and NCCL connects them as if each were on a separate host.
#include <signal.h>
#include <stdlib.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/device/device_set.h"
#include "common/core/device/testing/gpus_under_test.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/conformance/rank_processes.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/nccl/fake/fake_gpus.h"
#include "common/net/collectives/nccl/nccl_api.h"
#include "common/net/collectives/nccl/nccl_communicator.h"
#include "common/net/collectives/nccl/real_nccl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSize = 3;
constexpr int64_t kElementCount = 20000;

using Lanes = std::vector<std::unique_ptr<Lane>>;

// The GPUs and the communicator of one rank, in its process.
class RankState {
 public:
  explicit RankState(bool reports_lost_ranks) {
    if (!TestsUseRealGpu()) {
      gpus_.emplace(
          kSize, FakeNccl::Options{.reports_lost_ranks = reports_lost_ranks});
    }
  }

  absl::Status Connect(int rank, Lanes lanes) {
    constexpr absl::Duration kTimeout = RankProcesses::kUndisturbedTimeout;
    ASSIGN_OR_RETURN(Device* const device, FindDevice(rank));
    ASSIGN_OR_RETURN(const nccl::Api* const api,
                     gpus_.has_value() ? &gpus_->nccl().api() : RealNccl());
    auto control = MakeMessageCommunicator({rank, 1, std::move(lanes), {}});
    NcclGroup group{.device = device, .control = *std::move(control)};
    if (rank == 0) {
      MUSTER_CHECK(api->ncclGetUniqueId(&group.id) == nccl::kSuccess);
    }
    RETURN_IF_ERROR(group.control->Broadcast(
        {DType::kUint8, sizeof(group.id.bytes), group.id.bytes}, 0,
        {"the id of NCCL", kTimeout}));
    ASSIGN_OR_RETURN(
        communicator_,
        ConnectNccl(api, std::move(group), Clock::Real()->Now() + kTimeout));
    return absl::OkStatus();
  }

  Communicator& communicator() { return *communicator_; }

 private:
  absl::StatusOr<Device*> FindDevice(int rank) {
    if (gpus_.has_value()) return gpus_->device(rank);
    // NCCL refuses ranks of one host that share a GPU, so each rank gets its
    // own host id.
    setenv("NCCL_HOSTID", absl::StrCat("rank-", rank).c_str(), 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    RETURN_IF_ERROR(UseGpusUnderTest(1));
    return DeviceSet::OfProcess().FindDevice(0);
  }

  std::optional<FakeGpus> gpus_;
  std::unique_ptr<DeviceCommunicator> communicator_;
};

// Starts ranks that all-reduce different values in each call. If
// `reports_lost_ranks` is false, NCCL waits for lost ranks, and calls have a
// short timeout.
std::unique_ptr<RankProcesses> Start(const std::string& victim_faults,
                                     bool reports_lost_ranks) {
  const auto prepare = [=](int rank, Lanes lanes) -> RankProcesses::Call {
    const auto state = std::make_shared<RankState>(reports_lost_ranks);
    const absl::Status connected = state->Connect(rank, std::move(lanes));
    return [=](int call, absl::Duration timeout) -> std::string {
      if (!connected.ok()) return connected.ToString();
      Tensor buffer(DType::kInt32, Shape({kElementCount}));
      for (int32_t& value : buffer.mutable_flat<int32_t>()) value = rank + call;
      const absl::Status status = state->communicator().AllReduce(
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

class KilledNcclRankPhaseTest : public testing::TestWithParam<const char*> {};

TEST_P(KilledNcclRankPhaseTest, IsNamedByAllSurvivorsAtOnce) {
  Start(GetParam(), /*reports_lost_ranks=*/true)
      ->ExpectSurvivorsReport(NamesTheVictim("UNAVAILABLE"));
}

TEST(KilledNcclRankTest, IsNamedWhereverItIs) {
  const auto ranks = Start("", /*reports_lost_ranks=*/true);
  ASSERT_TRUE(ranks->AwaitVictimAtWork());
  const absl::Time killed = Clock::Real()->Now();
  ranks->SendToVictim(SIGKILL);
  ranks->ExpectSurvivorsReport(NamesTheVictim("UNAVAILABLE"));
  std::cout << "survivors ended " << Clock::Real()->Now() - killed
            << " after the kill\n";
}

// After the agreement, only NCCL can detect that a rank is missing, and here it
// does not report it.
TEST_P(KilledNcclRankPhaseTest, IsNamedWhenTheCallExpiresIfNcclWaitsForIt) {
  Start(GetParam(), /*reports_lost_ranks=*/false)
      ->ExpectSurvivorsReport(NamesTheVictim("UNAVAILABLE"));
}

INSTANTIATE_TEST_SUITE_P(
    Phases, KilledNcclRankPhaseTest,
    testing::Values("nccl.begin@call=4", "nccl.begin@call=9",
                    "nccl.agreed@call=4", "nccl.agreed@call=9",
                    "nccl.launched@call=4"),
    [](const auto& info) {
      std::string name = info.param;
      std::erase_if(name, [](char c) { return !isalnum(c); });
      return name;
    });

TEST(StoppedNcclRankTest, IsNamedWhenTheCallExpires) {
  const auto ranks = Start("", /*reports_lost_ranks=*/false);
  ASSERT_TRUE(ranks->AwaitVictimAtWork());
  ranks->SendToVictim(SIGSTOP);
  ranks->ExpectSurvivorsReport(NamesTheVictim("DEADLINE_EXCEEDED"));
}

}  // namespace
}  // namespace muster
