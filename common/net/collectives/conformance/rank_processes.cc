#include "common/net/collectives/conformance/rank_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/core/base/check.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/message/socket_lane.h"
#include "common/net/collectives/message/socket_stream.h"
#include "common/net/rpc/fault_point.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Many more calls than the fault needs to occur.
constexpr int kCallsMax = 100000;

// Sockets between all ranks, by owner and peer; -1 if both are the same rank.
using Sockets = std::vector<std::vector<int>>;

Sockets MakeSockets(int size) {
  Sockets sockets(size, std::vector<int>(size, -1));
  for (int rank = 0; rank < size; ++rank) {
    for (int peer = 0; peer < rank; ++peer) {
      int pair[2];
      MUSTER_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
      sockets[rank][peer] = pair[0];
      sockets[peer][rank] = pair[1];
    }
  }
  return sockets;
}

// Closes the sockets of all ranks but `rank`.
void CloseOthers(const Sockets& sockets, int rank) {
  for (int owner = 0; owner < static_cast<int>(sockets.size()); ++owner) {
    for (const int fd : sockets[owner]) {
      if (fd >= 0 && owner != rank) close(fd);
    }
  }
}

std::vector<std::unique_ptr<Lane>> LanesOf(const Sockets& sockets, int rank) {
  std::vector<std::unique_ptr<Lane>> lanes(sockets.size());
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    if (sockets[rank][peer] < 0) continue;
    lanes[peer] = MakeSocketLane(MakePlaintextStream(sockets[rank][peer]),
                                 "raw Unix socket");
  }
  return lanes;
}

// Makes the calls of one rank. Returns its report. Calls `at_work` after the
// measured calls.
std::string MakeCalls(const RankProcesses::Call& make_call,
                      absl::Duration expires_after,
                      const std::function<void()>& at_work) {
  constexpr absl::Duration kUndisturbed = RankProcesses::kUndisturbedTimeout;
  absl::Duration longest_call = absl::ZeroDuration();
  for (int call = 1; call <= kCallsMax; ++call) {
    const bool is_short = expires_after < absl::InfiniteDuration() &&
                          call > RankProcesses::kMeasuredCalls;
    const absl::Time start_time = Clock::Real()->Now();
    std::string said =
        make_call(call, is_short ? std::clamp(20 * longest_call, expires_after,
                                              kUndisturbed / 4)
                                 : kUndisturbed);
    longest_call = std::max(longest_call, Clock::Real()->Now() - start_time);
    if (!said.empty()) return said;
    if (call == RankProcesses::kMeasuredCalls) at_work();
  }
  return "nothing happened";
}

}  // namespace

RankProcesses::RankProcesses(const Options& options, const Prepare& prepare,
                             absl::Duration expires_after)
    : options_(options) {
  const Sockets sockets = MakeSockets(options.size);
  for (int rank = 0; rank < options.size; ++rank) {
    int report[2];
    MUSTER_CHECK(pipe(report) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
      if (rank == options.victim) {
        SetFaults(*ParseFaults(options.victim_faults));
      }
      CloseOthers(sockets, rank);
      const Call make_call = prepare(rank, LanesOf(sockets, rank));
      const std::string said = MakeCalls(make_call, expires_after, [&] {
        MUSTER_CHECK(write(report[1], kAtWork, 1) == 1);
      });
      MUSTER_CHECK(write(report[1], said.data(), said.size()) >= 0);
      _exit(0);
    }
    close(report[1]);
    pids_.push_back(pid);
    reports_.push_back(report[0]);
  }
  CloseOthers(sockets, /*rank=*/-1);
}

RankProcesses::~RankProcesses() {
  for (const pid_t pid : pids_) kill(pid, SIGKILL);
  for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
  for (const int fd : reports_) close(fd);
}

void RankProcesses::SendToVictim(int signal) {
  kill(pids_[options_.victim], signal);
}

void RankProcesses::ExpectSurvivorsReport(
    const testing::Matcher<std::string>& matcher) {
  for (int rank = 0; rank < options_.size; ++rank) {
    if (rank == options_.victim) continue;
    EXPECT_THAT(Read(rank, 1 << 20), matcher) << "rank " << rank;
  }
}

std::string RankProcesses::Read(int rank, size_t count) {
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

}  // namespace muster
