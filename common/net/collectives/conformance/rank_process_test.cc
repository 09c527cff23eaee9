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
#include "common/core/base/status_matchers.h"
#include "common/net/collectives/conformance/serial_reference.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/message/socket_lane.h"
#include "common/net/rpc/fault_point.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Real processes, one a rank, of which one is killed or stopped.
namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSize = 4;
constexpr int kVictim = 2;
constexpr int64_t kElementCount = 400000;
// A call in which nobody is stopped or killed ends by itself long before.
constexpr absl::Duration kUndisturbedTimeout = absl::Seconds(60);
constexpr absl::Duration kStoppedTimeoutMin = absl::Milliseconds(700);
// The calls from which a rank learns how busy the machine is.
constexpr int kMeasuredCalls = 3;

// How long a rank that `is_to_expire` waits in its next call. Ample for a call
// that nobody disturbs, given how long the longest one has taken.
absl::Duration NextTimeout(bool is_to_expire, int call,
                           absl::Duration longest_call) {
  if (!is_to_expire || call <= kMeasuredCalls) return kUndisturbedTimeout;
  return std::clamp(20 * longest_call, kStoppedTimeoutMin,
                    kUndisturbedTimeout / 4);
}

// What a rank says in one line before it ends.
std::string RunRank(int rank, std::vector<std::unique_ptr<Lane>> lanes,
                    bool is_to_expire, int report_fd) {
  auto communicator = *MakeMessageCommunicator({rank, 1, std::move(lanes), {}});
  const Tensor expected =
      ReducedValues(ReduceOp::kSum, DType::kInt32, kElementCount, kSize);
  absl::Duration longest_call = absl::ZeroDuration();
  // Many more calls than it takes to be struck.
  for (int call = 1; call <= 100000; ++call) {
    Tensor buffer =
        RankValues(ReduceOp::kSum, DType::kInt32, kElementCount, rank);
    const absl::Time start_time = Clock::Real()->Now();
    const absl::Status status = communicator->AllReduce(
        ReduceOp::kSum, SpanOf(buffer),
        {"gradients", NextTimeout(is_to_expire, call, longest_call)});
    longest_call = std::max(longest_call, Clock::Real()->Now() - start_time);
    if (!status.ok()) return status.ToString();
    if (!BitwiseEqual(buffer, expected)) return "a sum is wrong";
    // Tells the test that the group is at work.
    if (call == kMeasuredCalls) MUSTER_CHECK(write(report_fd, ".", 1) == 1);
  }
  return "nothing happened";
}

class RankProcessTest : public testing::Test {
 protected:
  void Start(const std::string& victim_faults, bool is_to_expire) {
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
        if (rank == kVictim) SetFaults(*ParseFaults(victim_faults));
        std::vector<std::unique_ptr<Lane>> lanes(kSize);
        for (int peer = 0; peer < kSize; ++peer) {
          for (int owner = 0; owner < kSize; ++owner) {
            const int fd = fds[owner][peer];
            if (owner == rank && peer != rank) {
              lanes[peer] = MakeSocketLane(fd, "raw Unix socket");
            } else if (fd >= 0) {
              close(fd);
            }
          }
        }
        const std::string said =
            RunRank(rank, std::move(lanes), is_to_expire, report[1]);
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

  ~RankProcessTest() override {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
    for (const int fd : reports_) close(fd);
  }

  // What has come from `rank`; up to `count` bytes, or all there is before it
  // ends. Gives up sooner than an undisturbed call, so what is read in time was
  // not said because a wait expired.
  std::string Read(int rank, size_t count) {
    std::string text;
    const absl::Time deadline = Clock::Real()->Now() + absl::Seconds(30);
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

  void SendToVictim(int signal) { kill(pids_[kVictim], signal); }

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

class KilledRankTest : public RankProcessTest,
                       public testing::WithParamInterface<const char*> {};

TEST_P(KilledRankTest, IsNamedByAllSurvivorsAtOnce) {
  Start(GetParam(), /*is_to_expire=*/false);
  ExpectSurvivorsSay(HasSubstr("UNAVAILABLE"));
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

TEST_F(RankProcessTest, AStoppedRankIsNamedWhenTheWaitExpires) {
  Start("never@call=1", /*is_to_expire=*/true);
  ASSERT_EQ(Read(kVictim, 1), ".");
  SendToVictim(SIGSTOP);
  ExpectSurvivorsSay(HasSubstr("DEADLINE_EXCEEDED"));
}

}  // namespace
}  // namespace muster
