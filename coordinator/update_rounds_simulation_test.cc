// Simulates workers and a parameter server around the real queue in synchronous
// training. One seed determines all events. In every order of events, all
// gradients of an update were computed with the weights before it, each closure
// was applied exactly once, and training goes on.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "coordinator/closure_queue.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Adds gradients up, and changes the weights with each `gradient_count`-th one.
class AccumulatingServer {
 public:
  explicit AccumulatingServer(int gradient_count)
      : gradient_count_(gradient_count) {}

  // Applies the gradients of a closure, computed with weights of `version`.
  void Push(uint64_t id, int64_t version) {
    if (applied_.contains(id)) return;
    EXPECT_EQ(version, this->version()) << "closure " << id;
    applied_.insert(id);
  }
  int64_t version() const {
    return static_cast<int64_t>(applied_.size()) / gradient_count_;
  }
  size_t applied_count() const { return applied_.size(); }

 private:
  const int gradient_count_;
  std::set<uint64_t> applied_;
};

struct Gradients {
  uint64_t id;
  int64_t version;
};

struct RoundWorker {
  bool is_connected = false;
  std::deque<uint64_t> unstarted;
  std::optional<Gradients> computed;  // Awaits permission if it has asked.
  bool has_asked = false;
  std::optional<Gradients> permitted;
  std::deque<ClosureQueue::Answers> answers;
  // Permitted gradients of a suspended process, which may arrive later.
  std::vector<Gradients> late;
};

class RoundsSimulation {
 public:
  RoundsSimulation(uint64_t seed, int worker_count, int backup_count)
      : random_(FoldIn(2, seed)),
        has_backups_(backup_count > 0),
        server_(worker_count - backup_count),
        queue_({.worker_count = worker_count,
                .attempts_max = 1 << 30,
                .rounds = {.gradient_count = worker_count - backup_count,
                           .backup_count = backup_count}}),
        workers_(worker_count) {}

  void Run(int event_count) {
    for (int i = 0; i < event_count; ++i) {
      const auto index = static_cast<int>(random_.Below(workers_.size()));
      switch (random_.Below(12)) {
        case 0:
          Connect(index);
          break;
        case 1:
          if (random_.Below(8) == 0) Lose(index);
          break;
        case 2:
          PushLate(&workers_[index]);
          break;
        case 3:
          values_.push_back(queue_.Add({.is_synchronous = true}));
          break;
        default:
          Advance(index);
      }
    }
    for (int i = 0; i < 100000 && !queue_.idle(); ++i) {
      const int index = i % static_cast<int>(workers_.size());
      Connect(index);
      Advance(index);
    }
    ASSERT_TRUE(queue_.idle()) << queue_.Describe();
    for (RoundWorker& worker : workers_) {
      while (!worker.late.empty()) PushLate(&worker);
    }
    EXPECT_EQ(server_.applied_count(), values_.size());
  }

 private:
  void Connect(int index) {
    if (std::exchange(workers_[index].is_connected, true)) return;
    queue_.WorkerReady(index);
  }

  // The worker is killed, or suspended until it counts as lost.
  void Lose(int index) {
    RoundWorker& worker = workers_[index];
    if (!worker.is_connected) return;
    queue_.WorkerLost(index, absl::UnavailableError("killed"));
    RoundWorker next;
    next.late = std::move(worker.late);
    if (worker.permitted.has_value()) next.late.push_back(*worker.permitted);
    worker = std::move(next);
  }

  void PushLate(RoundWorker* worker) {
    if (worker->late.empty()) return;
    const Gradients gradients = worker->late.back();
    worker->late.pop_back();
    server_.Push(gradients.id, gradients.version);
  }

  // Makes one step of the worker's protocol, or of the coordinator's.
  void Advance(int index) {
    RoundWorker& worker = workers_[index];
    if (!worker.is_connected) return;
    if (random_.Below(2) == 0) return Command(index);
    if (worker.permitted.has_value()) {
      const Gradients gradients = *std::exchange(worker.permitted, {});
      server_.Push(gradients.id, gradients.version);
      EXPECT_OK(queue_.Finish(index, gradients.id, {}));
    } else if (worker.computed.has_value() && !has_backups_) {
      worker.permitted = std::exchange(worker.computed, {});
    } else if (worker.computed.has_value() && !worker.has_asked) {
      worker.has_asked = true;
      EXPECT_OK(queue_.AskPermission(index, worker.computed->id));
    } else if (worker.computed.has_value()) {
      TakeAnswer(index);
    } else if (!worker.unstarted.empty()) {
      worker.computed = Gradients{worker.unstarted.front(), server_.version()};
      worker.unstarted.pop_front();
    }
  }

  void Command(int index) {
    std::vector<ClosureQueue::Taken> taken;
    queue_.Take(index, 8, &taken);
    for (const auto& closure : taken) {
      workers_[index].unstarted.push_back(closure.id);
    }
    EXPECT_LE(taken.size(), 1u);
    ClosureQueue::Answers answers = queue_.TakeAnswers(index);
    if (!answers.empty()) workers_[index].answers.push_back(std::move(answers));
  }

  void TakeAnswer(int index) {
    RoundWorker& worker = workers_[index];
    if (worker.answers.empty()) return;
    const ClosureQueue::Answers answers = std::move(worker.answers.front());
    worker.answers.pop_front();
    const Gradients gradients = *std::exchange(worker.computed, {});
    worker.has_asked = false;
    if (!answers.permitted.empty()) {
      EXPECT_EQ(answers.permitted.front(), gradients.id);
      worker.permitted = gradients;
    } else {
      EXPECT_EQ(answers.denied.front(), gradients.id);
      EXPECT_OK(queue_.Return(index, gradients.id));
    }
  }

  RandomStream random_;
  const bool has_backups_;  // Without them workers do not ask.
  AccumulatingServer server_;
  ClosureQueue queue_;
  std::vector<RoundWorker> workers_;
  std::vector<std::shared_ptr<RemoteValueState>> values_;
};

TEST(UpdateRoundsSimulationTest, AnUpdateHasGradientsOfTheSameWeights) {
  constexpr int kSeedCount = 300;
  for (const auto& [worker_count, backup_count] :
       {std::pair(1, 0), std::pair(2, 0), std::pair(3, 1), std::pair(5, 2)}) {
    for (int seed = 0; seed < kSeedCount; ++seed) {
      SCOPED_TRACE(absl::StrCat(worker_count, " workers, ", backup_count,
                                " backup workers, seed ", seed));
      RoundsSimulation(seed, worker_count, backup_count).Run(2000);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace muster
