// Runs each rank in a real process and kills or stops one of them.
#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/collectives/conformance/rank_processes.h"
#include "common/net/collectives/conformance/serial_reference.h"
#include "common/net/collectives/message/message_communicator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSize = 4;
constexpr int64_t kElementCount = 400000;

// All-reduces the same values in each call.
RankProcesses::Call PrepareRank(int rank,
                                std::vector<std::unique_ptr<Lane>> lanes) {
  const std::shared_ptr<Communicator> communicator =
      *MakeMessageCommunicator({rank, 1, std::move(lanes), {}});
  const Tensor expected =
      ReducedValues(ReduceOp::kSum, DType::kInt32, kElementCount, kSize);
  return [=](int, absl::Duration timeout) -> std::string {
    Tensor buffer =
        RankValues(ReduceOp::kSum, DType::kInt32, kElementCount, rank);
    const absl::Status status = communicator->AllReduce(
        ReduceOp::kSum, SpanOf(buffer), {"gradients", timeout});
    if (!status.ok()) return status.ToString();
    return BitwiseEqual(buffer, expected) ? "" : "a sum is wrong";
  };
}

testing::Matcher<std::string> NamesTheVictim(const char* code) {
  return AllOf(HasSubstr("all-reduce of gradients"), HasSubstr("rank 2"),
               HasSubstr(code));
}

class KilledRankTest : public testing::TestWithParam<const char*> {};

TEST_P(KilledRankTest, IsNamedByAllSurvivorsAtOnce) {
  RankProcesses ranks({.size = kSize, .victim = 2, .victim_faults = GetParam()},
                      PrepareRank);
  ranks.ExpectSurvivorsReport(NamesTheVictim("UNAVAILABLE"));
}

INSTANTIATE_TEST_SUITE_P(
    Phases, KilledRankTest,
    testing::Values("collectives.begin@call=1", "collectives.begin@call=5",
                    "collectives.sent@frame=1", "collectives.sent@frame=4",
                    "collectives.sent@frame=5", "collectives.received@frame=1",
                    "collectives.received@frame=3",
                    "collectives.received@frame=4",
                    "collectives.received@frame=6", "collectives.end@call=2"),
    [](const auto& info) {
      std::string name = info.param;
      std::erase_if(name, [](char c) { return !isalnum(c); });
      return name;
    });

TEST(StoppedRankTest, IsNamedWhenTheWaitExpires) {
  RankProcesses ranks({.size = kSize,
                       .victim = 2,
                       .victim_faults = "worker.before_step@call=1"},
                      PrepareRank, /*expires_after=*/absl::Milliseconds(700));
  ASSERT_TRUE(ranks.AwaitVictimAtWork());
  ranks.SendToVictim(SIGSTOP);
  ranks.ExpectSurvivorsReport(NamesTheVictim("DEADLINE_EXCEEDED"));
}

}  // namespace
}  // namespace muster
