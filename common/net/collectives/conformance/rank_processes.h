#ifndef COMMON_NET_COLLECTIVES_CONFORMANCE_RANK_PROCESSES_H_
#define COMMON_NET_COLLECTIVES_CONFORMANCE_RANK_PROCESSES_H_

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/net/collectives/message/lane.h"
#include "gmock/gmock.h"

namespace muster {

// Runs each rank in a real process, so that a test can kill or stop one of
// them. The processes are forks of the test and are connected by socket lanes.
// The destructor kills them.
class RankProcesses {
 public:
  // A call in which no rank is stopped or killed takes far less time.
  static constexpr absl::Duration kUndisturbedTimeout = absl::Seconds(60);
  // The number of calls by which a rank measures how busy the machine is.
  static constexpr int kMeasuredCalls = 3;

  struct Options {
    int size = 2;
    int victim = 0;
    // The faults of the victim, in the syntax of ParseFaults().
    std::string victim_faults = "";
  };

  // Makes one call of a rank, counted from 1. Returns the rank's report, after
  // which the rank exits, or "" if the rank continues.
  using Call = std::function<std::string(int call, absl::Duration timeout)>;
  // Runs in the process of a rank: sets the rank up and returns its Call.
  using Prepare =
      std::function<Call(int rank, std::vector<std::unique_ptr<Lane>> lanes)>;

  // Starts the ranks. Each makes calls until one returns a report. If
  // `expires_after` is given, calls after the first kMeasuredCalls have a short
  // timeout: at least `expires_after`, and ample for a call that is not
  // disturbed.
  RankProcesses(const Options& options, const Prepare& prepare,
                absl::Duration expires_after = absl::InfiniteDuration());
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Blocks until the victim has made kMeasuredCalls calls. False if it does
  // not.
  bool AwaitVictimAtWork() { return Read(options_.victim, 1) == kAtWork; }
  void SendToVictim(int signal);

  // Expects that the report of each rank except the victim matches. Stops
  // waiting before kUndisturbedTimeout is over, so no report that it reads is
  // due to that timeout.
  void ExpectSurvivorsReport(const testing::Matcher<std::string>& matcher);

 private:
  static constexpr char kAtWork[] = ".";

  // Returns up to `count` bytes from `rank`; fewer if its process ends first.
  std::string Read(int rank, size_t count);

  const Options options_;
  std::vector<pid_t> pids_;   // By rank.
  std::vector<int> reports_;  // Pipes, by rank.
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_RANK_PROCESSES_H_
