#include "tests/simulation/cluster/faults.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "tests/simulation/network/simulated_transport.h"

namespace muster::sim {
namespace {

constexpr absl::Duration kHeartbeatTimeout = absl::Seconds(5);
constexpr absl::Duration kRestartPauseMax = absl::Seconds(3);
constexpr absl::Duration kClockMoveMax = absl::Hours(2);

bool Toss(RandomStream* random) { return random->Below(2) == 0; }

absl::Duration DrawUpTo(absl::Duration longest, RandomStream* random) {
  if (longest <= absl::ZeroDuration()) return absl::ZeroDuration();
  return absl::Nanoseconds(
      random->Below(static_cast<uint64_t>(absl::ToInt64Nanoseconds(longest))));
}

absl::Duration DrawStop(absl::Duration stop_max, RandomStream* random) {
  absl::Duration half = absl::Milliseconds(10);
  while (half < stop_max / 4 && random->Below(4) != 0) half *= 2;
  return half + DrawUpTo(half, random);
}

TaskId DrawTask(const ClusterSpec& cluster, TaskType type,
                RandomStream* random) {
  const std::vector<TaskId> tasks = cluster.Tasks(type);
  return tasks[random->Below(tasks.size())];
}

// Sets a pair of tasks that have connections.
void DrawPair(const ClusterSpec& cluster, RandomStream* random,
              PlannedFault* fault) {
  const TaskId server = DrawTask(cluster, TaskType::kPs, random);
  const TaskId worker = DrawTask(cluster, TaskType::kWorker, random);
  const TaskId coordinator = SimulatedCluster::coordinator();
  const std::pair<TaskId, TaskId> pairs[] = {
      {coordinator, worker}, {coordinator, server}, {worker, server}};
  std::tie(fault->task, fault->other) = pairs[random->Below(3)];
}

std::vector<std::pair<PlannedFault::Kind, TaskType>> KindsOf(
    const FaultMixture& m) {
  using Kind = PlannedFault::Kind;
  std::vector<std::pair<Kind, TaskType>> kinds;
  const auto add = [&](bool wanted, Kind kind, TaskType type) {
    if (wanted) kinds.emplace_back(kind, type);
  };
  add(m.kills_workers, Kind::kKill, TaskType::kWorker);
  add(m.kills_servers, Kind::kKill, TaskType::kPs);
  add(m.kills_coordinators, Kind::kKill, TaskType::kChief);
  add(m.stops_workers, Kind::kStop, TaskType::kWorker);
  add(m.stops_servers, Kind::kStop, TaskType::kPs);
  add(m.stops_coordinators, Kind::kStop, TaskType::kChief);
  add(m.breaks_connections, Kind::kBreak, TaskType::kWorker);
  add(m.closes_paths, Kind::kClosePath, TaskType::kWorker);
  add(m.moves_clocks, Kind::kMoveClock, TaskType::kWorker);
  add(m.moves_clocks, Kind::kMoveClock, TaskType::kPs);
  add(m.moves_clocks, Kind::kMoveClock, TaskType::kChief);
  add(m.replaces_coordinators, Kind::kReplaceCoordinator, TaskType::kChief);
  return kinds;
}

PlannedFault DrawFault(const FaultMixture& mixture, const ClusterSpec& cluster,
                       RandomStream* random) {
  const auto kinds = KindsOf(mixture);
  const auto [kind, type] = kinds[random->Below(kinds.size())];
  PlannedFault fault = {.kind = kind,
                        .pause = DrawUpTo(mixture.pause_max, random),
                        .task = DrawTask(cluster, type, random)};
  switch (kind) {
    case PlannedFault::Kind::kKill:
      if (Toss(random)) fault.duration = DrawUpTo(kRestartPauseMax, random);
      break;
    case PlannedFault::Kind::kStop:
      fault.duration = DrawStop(mixture.stop_max, random);
      break;
    case PlannedFault::Kind::kBreak:
      DrawPair(cluster, random, &fault);
      break;
    case PlannedFault::Kind::kClosePath:
      DrawPair(cluster, random, &fault);
      fault.duration = DrawStop(mixture.stop_max, random);
      fault.closes_both_ways = Toss(random);
      break;
    case PlannedFault::Kind::kMoveClock:
      fault.duration = DrawUpTo(kClockMoveMax, random);
      if (Toss(random)) fault.duration = -fault.duration;
      break;
    case PlannedFault::Kind::kReplaceCoordinator:
      fault.duration = DrawUpTo(kRestartPauseMax, random);
      break;
  }
  return fault;
}

class Injector {
 public:
  Injector(Scheduler* scheduler, SimulatedNetwork* network,
           SimulatedCluster* cluster, const std::function<bool()>& may_replace)
      : scheduler_(*scheduler),
        transport_(network->transport()),
        cluster_(*cluster),
        may_replace_(may_replace) {}

  void Inject(const PlannedFault& fault) {
    scheduler_.Note(fault.ToString());
    switch (fault.kind) {
      case PlannedFault::Kind::kKill:
        return Kill(fault);
      case PlannedFault::Kind::kStop:
        return Stop(fault);
      case PlannedFault::Kind::kBreak:
        counts_.broken_connections += transport_.BreakConnections(
            cluster_.MachineOf(fault.task), cluster_.MachineOf(fault.other));
        return;
      case PlannedFault::Kind::kClosePath:
        return ClosePath(fault);
      case PlannedFault::Kind::kMoveClock:
        ++counts_.moved_clocks;
        return cluster_.MoveClock(fault.task, fault.duration);
      case PlannedFault::Kind::kReplaceCoordinator:
        return ReplaceCoordinator(fault);
    }
  }

  void Heal() {
    transport_.OpenAllPaths();
    cluster_.ResumeReplaced();
    for (const TaskId task : cluster_.served_tasks()) {
      cluster_.Resume(task);
      cluster_.Start(task);
    }
    scheduler_.Note("all faults are over");
  }

  const FaultCounts& counts() const { return counts_; }

 private:
  void Kill(const PlannedFault& fault) {
    const bool is_coordinator = fault.task == SimulatedCluster::coordinator();
    if (is_coordinator && !may_replace_()) return;
    if (!cluster_.Kill(fault.task)) return;
    ++(is_coordinator                         ? counts_.coordinator_kills
       : fault.task.type == TaskType::kWorker ? counts_.worker_kills
                                              : counts_.server_kills);
    absl::SleepFor(fault.duration);
    cluster_.Start(fault.task);
  }

  void Stop(const PlannedFault& fault) {
    ++(fault.task.type == TaskType::kChief    ? counts_.coordinator_stops
       : fault.task.type == TaskType::kWorker ? counts_.worker_stops
                                              : counts_.server_stops);
    cluster_.Stop(fault.task);
    if (fault.duration > kHeartbeatTimeout) ++counts_.long_stops;
    absl::SleepFor(fault.duration);
    cluster_.Resume(fault.task);
  }

  void ClosePath(const PlannedFault& fault) {
    ++counts_.closed_paths;
    SetPaths(fault, /*is_open=*/false);
    absl::SleepFor(fault.duration);
    SetPaths(fault, /*is_open=*/true);
  }

  void SetPaths(const PlannedFault& fault, bool is_open) {
    const std::string from = cluster_.MachineOf(fault.task);
    const std::string to = cluster_.MachineOf(fault.other);
    transport_.SetPath(from, to, is_open);
    if (fault.closes_both_ways) transport_.SetPath(to, from, is_open);
  }

  void ReplaceCoordinator(const PlannedFault& fault) {
    if (!may_replace_()) return;
    cluster_.Stop(SimulatedCluster::coordinator());
    absl::SleepFor(fault.duration);
    if (!cluster_.ReplaceCoordinator()) return;
    ++counts_.replaced_coordinators;
    absl::SleepFor(fault.duration);
    cluster_.ResumeReplaced();
  }

  Scheduler& scheduler_;
  SimulatedTransport& transport_;
  SimulatedCluster& cluster_;
  const std::function<bool()>& may_replace_;
  FaultCounts counts_;
};

}  // namespace

std::string PlannedFault::ToString() const {
  const std::string time =
      absl::FormatDuration(absl::Trunc(duration, absl::Microseconds(1)));
  switch (kind) {
    case Kind::kKill:
      return absl::StrCat("kills ", task.ToString(), " and starts it after ",
                          time);
    case Kind::kStop:
      return absl::StrCat("stops ", task.ToString(), " for ", time);
    case Kind::kBreak:
      return absl::StrCat("breaks the connections between ", task.ToString(),
                          " and ", other.ToString());
    case Kind::kClosePath:
      return absl::StrCat("closes the path from ", task.ToString(), " to ",
                          other.ToString(), closes_both_ways ? " and back" : "",
                          " for ", time);
    case Kind::kMoveClock:
      return absl::StrCat("moves the clock of ", task.ToString(), " by ", time);
    case Kind::kReplaceCoordinator:
      return absl::StrCat("stops ", task.ToString(), ", starts another one ",
                          "after ", time, ", and resumes it as much later");
  }
  return "";
}

FaultMixture DrawMixture(RandomStream* random) {
  FaultMixture mixture = {
      .fault_count = static_cast<int>(random->Below(12)),
      .pause_max = absl::Milliseconds(5 << random->Below(8)),
      .kills_workers = Toss(random),
      .kills_servers = Toss(random),
      .stops_workers = Toss(random),
      .stops_servers = Toss(random),
      .stops_coordinators = Toss(random),
      .breaks_connections = Toss(random),
      .closes_paths = Toss(random),
      .moves_clocks = Toss(random)};
  if (random->Below(3) == 0) {
    mixture.kills_coordinators = Toss(random);
    mixture.replaces_coordinators = !mixture.kills_coordinators || Toss(random);
    mixture.kills_servers = false;
    mixture.closes_paths = false;
    mixture.stop_max = absl::Seconds(2);
  }
  return mixture;
}

std::vector<PlannedFault> DrawFaults(const FaultMixture& mixture,
                                     const ClusterSpec& cluster,
                                     uint64_t seed) {
  std::vector<PlannedFault> faults;
  if (KindsOf(mixture).empty()) return faults;
  for (int i = 0; i < mixture.fault_count; ++i) {
    RandomStream random(FoldIn(FoldIn(seed, "fault"), uint64_t(i)));
    faults.push_back(DrawFault(mixture, cluster, &random));
  }
  return faults;
}

bool AreHarmless(const std::vector<PlannedFault>& faults) {
  absl::Duration stopped;
  for (const PlannedFault& fault : faults) {
    if (fault.kind == PlannedFault::Kind::kMoveClock) continue;
    if (fault.kind != PlannedFault::Kind::kStop) return false;
    stopped += fault.duration;
  }
  return stopped < kHeartbeatTimeout - absl::Seconds(1);
}

FaultCounts InjectFaults(const std::vector<PlannedFault>& faults,
                         Scheduler* scheduler, SimulatedNetwork* network,
                         SimulatedCluster* cluster,
                         const std::function<bool()>& is_over,
                         const std::function<bool()>& may_replace) {
  Injector injector(scheduler, network, cluster, may_replace);
  for (const PlannedFault& fault : faults) {
    absl::SleepFor(fault.pause);
    if (is_over()) break;
    injector.Inject(fault);
  }
  injector.Heal();
  return injector.counts();
}

}  // namespace muster::sim
