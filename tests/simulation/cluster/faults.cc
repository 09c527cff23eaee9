#include "tests/simulation/cluster/faults.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/simulation/network/simulated_transport.h"

namespace muster::sim {
namespace {

constexpr absl::Duration kHeartbeatTimeout = absl::Seconds(5);

class Injector {
 public:
  Injector(const FaultPlan& plan, Scheduler* scheduler,
           SimulatedNetwork* network, SimulatedCluster* cluster,
           const std::function<bool()>& is_over)
      : plan_(plan),
        scheduler_(*scheduler),
        transport_(network->transport()),
        cluster_(*cluster),
        is_over_(is_over) {
    const auto add = [this](bool wanted, void (Injector::*inject)()) {
      if (wanted) kinds_.push_back(inject);
    };
    add(plan.kills_workers, &Injector::KillWorker);
    add(plan.kills_servers, &Injector::KillServer);
    add(plan.stops_workers, &Injector::StopWorker);
    add(plan.stops_servers, &Injector::StopServer);
    add(plan.breaks_connections, &Injector::BreakConnections);
    add(plan.closes_paths, &Injector::ClosePath);
  }

  FaultCounts Run() {
    for (int i = 0; i < plan_.fault_count && !kinds_.empty(); ++i) {
      Pause(plan_.pause_max);
      if (is_over_()) break;
      (this->*kinds_[scheduler_.Below(kinds_.size())])();
    }
    Heal();
    return counts_;
  }

 private:
  bool Toss() { return scheduler_.Below(2) == 0; }

  absl::Duration DrawStop() {
    absl::Duration half = absl::Milliseconds(10);
    while (half < plan_.stop_max / 4 && scheduler_.Below(4) != 0) half *= 2;
    return half + absl::Nanoseconds(scheduler_.Below(
                      static_cast<uint64_t>(absl::ToInt64Nanoseconds(half))));
  }

  void Pause(absl::Duration longest) {
    if (longest > absl::ZeroDuration()) {
      absl::SleepFor(absl::Nanoseconds(scheduler_.Below(
          static_cast<uint64_t>(absl::ToInt64Nanoseconds(longest)))));
    }
  }

  TaskId Draw(TaskType type) {
    const std::vector<TaskId> tasks = cluster_.spec().Tasks(type);
    return tasks[scheduler_.Below(tasks.size())];
  }
  // A pair of tasks that have connections.
  std::pair<TaskId, TaskId> DrawPair() {
    const TaskId server = Draw(TaskType::kPs);
    const TaskId worker = Draw(TaskType::kWorker);
    switch (scheduler_.Below(3)) {
      case 0:
        return {SimulatedCluster::coordinator(), worker};
      case 1:
        return {SimulatedCluster::coordinator(), server};
      default:
        return {worker, server};
    }
  }

  void KillAndRestart(TaskId task) {
    cluster_.Kill(task);
    if (Toss()) Pause(absl::Seconds(3));
    cluster_.Start(task);
  }
  void KillWorker() {
    ++counts_.worker_kills;
    KillAndRestart(Draw(TaskType::kWorker));
  }
  void KillServer() {
    ++counts_.server_kills;
    KillAndRestart(Draw(TaskType::kPs));
  }

  void StopFor(TaskId task, absl::Duration duration) {
    cluster_.Stop(task);
    if (duration > kHeartbeatTimeout) ++counts_.long_stops;
    absl::SleepFor(duration);
    cluster_.Resume(task);
  }
  void StopWorker() {
    ++counts_.worker_stops;
    StopFor(Draw(TaskType::kWorker), DrawStop());
  }
  void StopServer() {
    ++counts_.server_stops;
    StopFor(Draw(TaskType::kPs), DrawStop());
  }

  void BreakConnections() {
    const auto [one, other] = DrawPair();
    const int count = transport_.BreakConnections(cluster_.MachineOf(one),
                                                  cluster_.MachineOf(other));
    counts_.broken_connections += count;
    scheduler_.Note(absl::StrCat("breaks ", count, " connections between ",
                                 one.ToString(), " and ", other.ToString()));
  }

  void ClosePath() {
    const auto [one, other] = DrawPair();
    const bool both = Toss();
    ++counts_.closed_paths;
    SetPaths(one, other, both, /*is_open=*/false);
    absl::SleepFor(DrawStop());
    SetPaths(one, other, both, /*is_open=*/true);
  }

  void SetPaths(TaskId one, TaskId other, bool both, bool is_open) {
    const std::string from = cluster_.MachineOf(one);
    const std::string to = cluster_.MachineOf(other);
    scheduler_.Note(absl::StrCat(is_open ? "opens" : "closes",
                                 " the path from ", one.ToString(), " to ",
                                 other.ToString(), both ? " and back" : ""));
    transport_.SetPath(from, to, is_open);
    if (both) transport_.SetPath(to, from, is_open);
  }

  void Heal() {
    transport_.OpenAllPaths();
    for (const TaskId task : cluster_.served_tasks()) {
      cluster_.Resume(task);
      cluster_.Start(task);
    }
    scheduler_.Note("all faults are over");
  }

  const FaultPlan plan_;
  Scheduler& scheduler_;
  SimulatedTransport& transport_;
  SimulatedCluster& cluster_;
  const std::function<bool()>& is_over_;
  std::vector<void (Injector::*)()> kinds_;
  FaultCounts counts_;
};

}  // namespace

FaultPlan DrawFaultPlan(Scheduler* scheduler) {
  const auto toss = [scheduler] { return scheduler->Below(2) == 0; };
  return {.fault_count = static_cast<int>(scheduler->Below(12)),
          .pause_max = absl::Milliseconds(5 << scheduler->Below(8)),
          .kills_workers = toss(),
          .kills_servers = toss(),
          .stops_workers = toss(),
          .stops_servers = toss(),
          .breaks_connections = toss(),
          .closes_paths = toss()};
}

FaultCounts InjectFaults(const FaultPlan& plan, Scheduler* scheduler,
                         SimulatedNetwork* network, SimulatedCluster* cluster,
                         const std::function<bool()>& is_over) {
  return Injector(plan, scheduler, network, cluster, is_over).Run();
}

}  // namespace muster::sim
