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

// Real processes, one a rank, of which one is killed or stopped. They are forks
// of the test, connected by socket lanes, and are killed by the destructor.
class RankProcesses {
 public:
  // A call in which no rank is stopped or killed ends by itself long before.
  static constexpr absl::Duration kUndisturbedTimeout = absl::Seconds(60);
  // The calls from which a rank learns how busy the machine is.
  static constexpr int kMeasuredCalls = 3;

  struct Options {
    int size = 2;
    int victim = 0;
    // As ParseFaults(): the faults of the victim.
    std::string victim_faults = "";
  };

  // One call of a rank, counted from 1. Returns what the rank says before it
  // ends; nothing if it continues.
  using Call = std::function<std::string(int call, absl::Duration timeout)>;
  // Makes what a rank uses, in its process, and returns what it does.
  using Prepare =
      std::function<Call(int rank, std::vector<std::unique_ptr<Lane>> lanes)>;

  // Starts the ranks. Each makes calls until one says something. If
  // `expires_after` is given, those after kMeasuredCalls expire soon: after an
  // ample time for a call that is not disturbed, and not before this.
  RankProcesses(const Options& options, const Prepare& prepare,
                absl::Duration expires_after = absl::InfiniteDuration());
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Blocks until the victim has made kMeasuredCalls calls. False if it does
  // not.
  bool AwaitVictimAtWork() { return Read(options_.victim, 1) == kAtWork; }
  void SendToVictim(int signal);

  // Expects it of what each other rank has said when it has ended. Gives up
  // sooner than an undisturbed call expires, so what is read in time was not
  // said because of that.
  void ExpectSurvivorsSay(const testing::Matcher<std::string>& matcher);

 private:
  static constexpr char kAtWork[] = ".";

  // Returns up to `count` bytes from `rank`, or all there is before it ends.
  std::string Read(int rank, size_t count);

  const Options options_;
  std::vector<pid_t> pids_;   // By rank.
  std::vector<int> reports_;  // Pipes, by rank.
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_RANK_PROCESSES_H_
