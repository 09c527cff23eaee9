// Simulates workers, a network and a parameter server around the real queue.
// One seed determines all events. In every order of events, each closure that
// is reported as successful was applied exactly once, and no closure is lost.

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "coordinator/closure_queue.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Applies each id once, as parameter servers do, and ignores ids below the
// low-water mark.
class SimulatedServer {
 public:
  void Push(uint64_t id, uint64_t low_water_mark) {
    mark_ = std::max(mark_, low_water_mark);
    applied_.erase(applied_.begin(), applied_.lower_bound(mark_));
    if (id < mark_) return;
    if (applied_.insert(id).second) ++applied_counts_[id];
  }
  int applied_count(uint64_t id) const {
    const auto found = applied_counts_.find(id);
    return found == applied_counts_.end() ? 0 : found->second;
  }
  size_t memory() const { return applied_.size(); }

 private:
  uint64_t mark_ = 0;
  std::set<uint64_t> applied_;
  std::map<uint64_t, int> applied_counts_;
};

struct Report {
  enum Kind { kFinished, kFailed, kReturned } kind;
  uint64_t id;
};

// A worker process and both directions of its stream.
struct SimulatedWorker {
  bool connected = false;
  // Pushes (id, mark) of a suspended process, which arrive at any later time.
  std::vector<std::pair<uint64_t, uint64_t>> late_pushes;
  struct Command {
    bool is_recall;
    uint64_t id;
    uint64_t mark;
  };
  std::deque<Command> commands;
  std::deque<std::pair<uint64_t, uint64_t>> unstarted;  // Id, mark.
  std::deque<Report> reports;
};

class Simulation {
 public:
  Simulation(uint64_t seed, int worker_count)
      : random_(FoldIn(1, seed)),
        queue_({.worker_count = worker_count,
                .queued_closures_max = 64,
                .attempts_max = 1 << 30,
                .window = {.closures_at_start = 5}}),
        workers_(worker_count) {}

  void Run(int event_count) {
    for (int i = 0; i < event_count; ++i) Event();
    Drain();
    Check();
  }

 private:
  SimulatedWorker& PickWorker(int* index) {
    *index = static_cast<int>(random_.Below(workers_.size()));
    return workers_[*index];
  }

  void Event() {
    int index = 0;
    SimulatedWorker& worker = PickWorker(&index);
    switch (random_.Below(16)) {
      case 0:
        if (!worker.connected) {
          worker.connected = true;
          queue_.WorkerReady(index);
        }
        break;
      case 1:
        if (random_.Below(8) == 0) Kill(index);
        break;
      case 2:
        if (!values_.empty() && random_.Below(8) == 0) {
          queue_.Cancel(1 + random_.Below(values_.size()));
        }
        break;
      case 3:
        if (!worker.late_pushes.empty()) {
          server_.Push(worker.late_pushes.back().first,
                       worker.late_pushes.back().second);
          worker.late_pushes.pop_back();
        }
        break;
      case 4:
      case 5:
      case 6:
        Schedule();
        break;
      case 7:
      case 8:
        Send(index);
        break;
      case 9:
      case 10:
      case 11:
        Receive(&worker);
        break;
      case 12:
      case 13:
        Execute(&worker, /*may_fail=*/true);
        break;
      default:
        Hear(index);
    }
  }

  void Schedule() {
    if (queue_.failing()) {
      if (queue_.idle() && !queue_.TakeFailure().ok()) ++failures_taken_;
      return;
    }
    if (queue_.HasRoom()) values_.push_back(queue_.Add({}));
  }

  void Send(int index) {
    SimulatedWorker& worker = workers_[index];
    if (!worker.connected) return;
    for (uint64_t id : queue_.TakeRecalls(index)) {
      worker.commands.push_back({true, id, 0});
    }
    std::vector<ClosureQueue::Taken> taken;
    queue_.Take(index, 1 + static_cast<int>(random_.Below(4)), &taken);
    for (const auto& closure : taken) {
      worker.commands.push_back({false, closure.id, queue_.low_water_mark()});
    }
  }

  void Receive(SimulatedWorker* worker) {
    if (worker->commands.empty()) return;
    const auto command = worker->commands.front();
    worker->commands.pop_front();
    if (!command.is_recall) {
      worker->unstarted.emplace_back(command.id, command.mark);
      return;
    }
    const auto found = std::find_if(
        worker->unstarted.begin(), worker->unstarted.end(),
        [&](const auto& entry) { return entry.first == command.id; });
    if (found == worker->unstarted.end()) return;
    worker->unstarted.erase(found);
    worker->reports.push_back({Report::kReturned, command.id});
  }

  void Execute(SimulatedWorker* worker, bool may_fail) {
    if (worker->unstarted.empty()) return;
    const auto [id, mark] = worker->unstarted.front();
    worker->unstarted.pop_front();
    if (may_fail && random_.Below(64) == 0) {
      worker->reports.push_back({Report::kFailed, id});
      return;
    }
    server_.Push(id, mark);
    worker->reports.push_back({Report::kFinished, id});
  }

  void Hear(int index) {
    SimulatedWorker& worker = workers_[index];
    if (!worker.connected || worker.reports.empty()) return;
    const Report report = worker.reports.front();
    worker.reports.pop_front();
    switch (report.kind) {
      case Report::kFinished:
        EXPECT_OK(queue_.Finish(index, report.id, {}));
        queue_.ObservePace(index, 1, absl::Microseconds(random_.Below(100000)));
        break;
      case Report::kFailed:
        EXPECT_OK(queue_.Fail(index, report.id, absl::InternalError("no")));
        break;
      case Report::kReturned:
        EXPECT_OK(queue_.Return(index, report.id));
    }
  }

  // Simulates a worker that was killed, or that was suspended until it counted
  // as lost.
  void Kill(int index) {
    SimulatedWorker& worker = workers_[index];
    if (!worker.connected) return;
    queue_.WorkerLost(index, absl::UnavailableError("killed"));
    SimulatedWorker next;
    next.late_pushes = std::move(worker.late_pushes);
    if (!worker.unstarted.empty()) {
      next.late_pushes.push_back(worker.unstarted.front());
    }
    worker = std::move(next);
  }

  // Runs without further faults until every closure has finished.
  void Drain() {
    for (int round = 0; round < 100000 && !queue_.idle(); ++round) {
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (!workers_[i].connected) {
          workers_[i].connected = true;
          queue_.WorkerReady(static_cast<int>(i));
        }
        Send(static_cast<int>(i));
        Receive(&workers_[i]);
        Execute(&workers_[i], /*may_fail=*/false);
        Hear(static_cast<int>(i));
      }
    }
    for (SimulatedWorker& worker : workers_) {
      for (const auto& [id, mark] : worker.late_pushes) server_.Push(id, mark);
    }
  }

  void Check() {
    ASSERT_TRUE(queue_.idle()) << queue_.Describe();
    for (const auto& value : values_) {
      ASSERT_TRUE(value->done()) << "closure " << value->closure_id();
      const int applied_count = server_.applied_count(value->closure_id());
      if (value->status().ok()) {
        ASSERT_EQ(applied_count, 1) << "closure " << value->closure_id();
      } else {
        ASSERT_LE(applied_count, 1) << "closure " << value->closure_id();
      }
    }
    EXPECT_EQ(queue_.low_water_mark(), values_.size() + 1);
    EXPECT_EQ(queue_.finished_count(), static_cast<int64_t>(values_.size()));
    EXPECT_LE(server_.memory(), 4u * 64u);
  }

  RandomStream random_;
  ClosureQueue queue_;
  std::vector<SimulatedWorker> workers_;
  SimulatedServer server_;
  std::vector<std::shared_ptr<RemoteValueState>> values_;
  int failures_taken_ = 0;
};

class ClosureQueueSimulationTest : public testing::TestWithParam<int> {};

TEST_P(ClosureQueueSimulationTest,
       AppliesEachClosureOnceInRandomOrdersOfEvents) {
  constexpr int kSeedCount = 400;
  for (int seed = 0; seed < kSeedCount; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Simulation(seed, GetParam()).Run(2000);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, ClosureQueueSimulationTest,
                         testing::Values(1, 2, 3, 7));

}  // namespace
}  // namespace muster
