// Real processes, one a rank, each with a simulated GPU, of which one is killed
// or stopped.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/clock.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/message/socket_lane.h"
#include "common/net/collectives/nccl/fake/fake_gpus.h"
#include "common/net/collectives/nccl/nccl_communicator.h"
#include "common/net/rpc/fault_point.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSize = 3;
constexpr int kVictim = 2;
constexpr int64_t kElementCount = 20000;
// A call in which nobody is stopped or killed ends by itself long before.
constexpr absl::Duration kUndisturbedTimeout = absl::Seconds(60);
constexpr absl::Duration kDisturbedTimeoutMin = absl::Seconds(1);
// The calls from which a rank learns how busy the machine is.
constexpr int kMeasuredCalls = 3;

struct Scenario {
  std::string victim_faults;
  // Otherwise NCCL waits for lost ranks.
  bool reports_lost_ranks = true;
  // Whether calls expire soon.
  bool is_to_expire = false;
};

using Lanes = std::vector<std::unique_ptr<Lane>>;

absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Connect(FakeGpus& gpus,
                                                            int rank,
                                                            Lanes lanes) {
  auto control = MakeMessageCommunicator({rank, 1, std::move(lanes), {}});
  NcclGroup group{.device = gpus.device(rank), .control = *std::move(control)};
  if (rank == 0) {
    MUSTER_CHECK(gpus.nccl().api().ncclGetUniqueId(&group.id) ==
                 nccl::kSuccess);
  }
  const absl::Status told = group.control->Broadcast(
      {DType::kUint8, sizeof(group.id.bytes), group.id.bytes}, 0,
      {"the id of NCCL", kUndisturbedTimeout});
  if (!told.ok()) return told;
  return ConnectNccl(&gpus.nccl().api(), std::move(group),
                     Clock::Real()->Now() + kUndisturbedTimeout);
}

// What a rank says in one line before it ends.
std::string RunRank(int rank, Lanes lanes, const Scenario& scenario,
                    int report_fd) {
  FakeGpus gpus(kSize, {.reports_lost_ranks = scenario.reports_lost_ranks});
  auto communicator = Connect(gpus, rank, std::move(lanes));
  if (!communicator.ok()) return communicator.status().ToString();
  absl::Duration longest_call = absl::ZeroDuration();
  // Many more calls than it takes to be struck.
  for (int call = 1; call <= 100000; ++call) {
    Tensor buffer(DType::kInt32, Shape({kElementCount}));
    for (int32_t& value : buffer.mutable_flat<int32_t>()) value = rank + call;
    const bool is_short = scenario.is_to_expire && call > kMeasuredCalls;
    const absl::Duration timeout =
        is_short ? std::clamp(20 * longest_call, kDisturbedTimeoutMin,
                              kUndisturbedTimeout / 4)
                 : kUndisturbedTimeout;
    const absl::Time start_time = Clock::Real()->Now();
    const absl::Status status =
        (*communicator)
            ->AllReduce(ReduceOp::kSum, SpanOf(buffer), {"gradients", timeout});
    longest_call = std::max(longest_call, Clock::Real()->Now() - start_time);
    const int32_t first = buffer.flat<int32_t>()[0];
    if (!status.ok()) {
      return first == rank + call ? status.ToString() : "applied a failed sum";
    }
    if (first != kSize * call + kSize * (kSize - 1) / 2) return "a wrong sum";
    // Tells the test that the group is at work.
    if (call == kMeasuredCalls) MUSTER_CHECK(write(report_fd, ".", 1) == 1);
  }
  return "nothing happened";
}

class NcclProcessTest : public testing::Test {
 protected:
  void Start(const Scenario& scenario) {
    std::vector<std::vector<int>> fds(kSize, std::vector<int>(kSize, -1));
    for (int rank = 0; rank < kSize; ++rank) {
      for (int peer = 0; peer < rank; ++peer) {
        int pair[2];
        MUSTER_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        fds[rank][peer] = pair[0];
        fds[peer][rank] = pair[1];
      }
    }
    for (int rank = 0; rank < kSize; ++rank) {
      int report[2];
      MUSTER_CHECK(pipe(report) == 0);
      const pid_t pid = fork();
      if (pid == 0) {
        if (rank == kVictim) SetFaults(*ParseFaults(scenario.victim_faults));
        Lanes lanes(kSize);
        for (int owner = 0; owner < kSize; ++owner) {
          for (int peer = 0; peer < kSize; ++peer) {
            const int fd = fds[owner][peer];
            if (fd < 0) continue;
            if (owner == rank) {
              lanes[peer] = MakeSocketLane(fd, "raw Unix socket");
            } else {
              close(fd);
            }
          }
        }
        const std::string said =
            RunRank(rank, std::move(lanes), scenario, report[1]);
        MUSTER_CHECK(write(report[1], said.data(), said.size()) >= 0);
        _exit(0);
      }
      close(report[1]);
      pids_.push_back(pid);
      reports_.push_back(report[0]);
    }
    for (const auto& row : fds) {
      for (const int fd : row) {
        if (fd >= 0) close(fd);
      }
    }
  }

  ~NcclProcessTest() override {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
    for (const int fd : reports_) close(fd);
  }

  // What has come from `rank`; up to `count` bytes, or all there is before it
  // ends. Gives up sooner than an undisturbed call, so what is read in time was
  // not said because a wait expired.
  std::string Read(int rank, size_t count) {
    std::string text;
    const absl::Time deadline = Clock::Real()->Now() + kUndisturbedTimeout / 2;
    while (text.size() < count && Clock::Real()->Now() < deadline) {
      pollfd entry = {reports_[rank], POLLIN, 0};
      if (poll(&entry, 1, 1000) <= 0) continue;
      char chunk[4096];
      const ssize_t got = read(reports_[rank], chunk,
                               std::min(sizeof(chunk), count - text.size()));
      if (got <= 0) break;
      text.append(chunk, got);
    }
    return text;
  }

  void StopVictim() { kill(pids_[kVictim], SIGSTOP); }

  void ExpectSurvivorsSay(const testing::Matcher<std::string>& matcher) {
    for (int rank = 0; rank < kSize; ++rank) {
      if (rank == kVictim) continue;
      EXPECT_THAT(Read(rank, 1 << 20),
                  AllOf(HasSubstr("all-reduce of gradients"),
                        HasSubstr("rank 2"), matcher))
          << "rank " << rank;
    }
  }

 private:
  std::vector<pid_t> pids_;
  std::vector<int> reports_;
};

class KilledNcclRankTest : public NcclProcessTest,
                           public testing::WithParamInterface<const char*> {};

TEST_P(KilledNcclRankTest, IsNamedByAllSurvivorsAtOnce) {
  Start({.victim_faults = GetParam()});
  ExpectSurvivorsSay(HasSubstr("UNAVAILABLE"));
}

// After the agreement, only NCCL knows that a rank is missing, and says
// nothing.
TEST_P(KilledNcclRankTest, IsNamedWhenTheCallExpiresIfNcclWaitsForIt) {
  Start({.victim_faults = GetParam(),
         .reports_lost_ranks = false,
         .is_to_expire = true});
  ExpectSurvivorsSay(HasSubstr("UNAVAILABLE"));
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

TEST_F(NcclProcessTest, AStoppedRankIsNamedWhenTheCallExpires) {
  Start({.victim_faults = "never@call=1",
         .reports_lost_ranks = false,
         .is_to_expire = true});
  ASSERT_EQ(Read(kVictim, 1), ".");
  StopVictim();
  ExpectSurvivorsSay(HasSubstr("DEADLINE_EXCEEDED"));
}

}  // namespace
}  // namespace muster
