#include "tests/simulation/cluster/training.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/server_recovery.h"
#include "muster.h"
#include "proto/variable.pb.h"

namespace muster::sim {
namespace {

// Longer than any fault.
constexpr absl::Duration kPatience = absl::Minutes(20);
constexpr int64_t kSumCount = 4;
constexpr int kAssignmentCount = 5;
// Copies of a call arrive within this time.
constexpr absl::Duration kDuplicateTime = absl::Milliseconds(500);

// The programs of this file use variables in two shards, so that each of two
// servers has one.
constexpr int kShardCount = 2;

proto::VariableSpec ZeroSpec(const VariableHandle& variable) {
  proto::VariableSpec spec;
  spec.set_name(variable.name);
  spec.set_dtype(proto::DT_FLOAT);
  for (const int64_t extent : variable.type.shape.dims()) {
    spec.mutable_shape()->add_dim(extent);
  }
  spec.mutable_initializer()->mutable_constant()->set_value(0);
  spec.set_trainable(true);
  return spec;
}

// The variables and the step of a training with `step_count` steps.
struct CountingProgram {
  explicit CountingProgram(int step_count)
      : counts{"counts",
               {DType::kFloat32, {int64_t{kShardCount} * step_count, 1}}} {}

  absl::Status CreateVariables(VariableStore& store) const {
    RETURN_IF_ERROR(store.Create(ZeroSpec(counts)));
    RETURN_IF_ERROR(store.Create(ZeroSpec(sums)));
    RETURN_IF_ERROR(store.Create(ZeroSpec(assigned)));
    return store.SetOptimizer(Sgd({.learning_rate = 1.0}));
  }

  // The argument has the rows of `counts` that the step increments, of which
  // the first is its number.
  Function Step() const {
    return Function::Of("step", [*this](GraphBuilder& builder, Value rows) {
      const Value ones = OnesLike(GatherVariable(counts, rows));
      ApplySparseGradient(counts, ones * -1.0f, rows);
      const Value first = Sum(
          Cast(rows, DType::kFloat32) *
          builder.Constant(Tensor::FromValues<float>({kShardCount}, {1, 0})));
      ApplyGradient(
          sums, OnesLike(ReadVariable(builder, sums)) * (first + 1.0f) * -1.0f);
      return rows;
    });
  }

  const VariableHandle counts;
  const VariableHandle sums = {"sums", {DType::kFloat32, {kSumCount}}};
  const VariableHandle assigned = {"assigned",
                                   {DType::kFloat32, {kShardCount}}};
};

absl::Status ReadVariables(const CountingProgram& program, VariableStore& store,
                           StepHistory* history) {
  ASSIGN_OR_RETURN(const Tensor counts, store.Read(program.counts.name));
  ASSIGN_OR_RETURN(const Tensor sums, store.Read(program.sums.name));
  const auto all = counts.flat<float>();
  const size_t per_server = all.size() / kShardCount;
  history->counts.clear();
  for (size_t server = 0; server < kShardCount; ++server) {
    const auto* const begin = all.data() + server * per_server;
    history->counts.emplace_back(begin, begin + per_server);
  }
  history->sums.assign(sums.flat<float>().begin(), sums.flat<float>().end());
  return absl::OkStatus();
}

// Assigns numbers in order, and reads the last one after any copy of an earlier
// assignment has arrived.
absl::Status AssignInOrder(const CountingProgram& program, VariableStore& store,
                           StepHistory* history) {
  Tensor last;
  for (int i = 1; i <= kAssignmentCount; ++i) {
    last = Tensor::Full(DType::kFloat32, {kShardCount}, static_cast<float>(i));
    RETURN_IF_ERROR(store.Assign(program.assigned.name, last));
  }
  absl::SleepFor(kDuplicateTime);
  ASSIGN_OR_RETURN(const Tensor read, store.Read(program.assigned.name));
  history->assigned.assign(last.flat<float>().begin(),
                           last.flat<float>().end());
  history->read.assign(read.flat<float>().begin(), read.flat<float>().end());
  return absl::OkStatus();
}

// A training loop as a user writes it: runs each step, and runs those again
// that a rollback has undone.
class CountingLoop {
 public:
  CountingLoop(ClusterCoordinator* coordinator, VariableStore* store,
               const ServerRecovery* recovery, const CountingProgram& program,
               int step_count, StepHistory* history)
      : coordinator_(*coordinator),
        store_(*store),
        recovery_(*recovery),
        program_(program),
        step_count_(step_count),
        history_(*history),
        function_(program.Step()),
        values_(static_cast<size_t>(step_count)) {
    ++history_.start_count;
    history_.steps.assign(static_cast<size_t>(step_count), {});
    for (int k = 0; k < step_count; ++k) due_.push_back(k);
    coordinator_.OnRollback(
        [this](const RollbackReport& report) { OnRollback(report); });
  }
  ~CountingLoop() { coordinator_.OnRollback(nullptr); }
  CountingLoop(const CountingLoop&) = delete;
  CountingLoop& operator=(const CountingLoop&) = delete;

  absl::Status Run() {
    RETURN_IF_ERROR(program_.CreateVariables(store_));
    int seen_rollback_count = -1;
    // Ends when no rollback has happened since the steps were scheduled. Each
    // rollback is caused by a fault, of which there are a few.
    // A read may return values from after a rollback before the handler is
    // called, so that a recovery in progress counts as well.
    while (seen_rollback_count != rollback_count() ||
           recovery_.is_recovering()) {
      seen_rollback_count = rollback_count();
      RETURN_IF_ERROR(ScheduleDue());
      RETURN_IF_ERROR(coordinator_.Join(absl::Now() + kPatience));
      RETURN_IF_ERROR(ReadVariables(program_, store_, &history_));
    }
    FetchResults();
    return absl::OkStatus();
  }

  int rollback_count() const {
    absl::MutexLock lock(&mutex_);
    return history_.rollback_count;
  }

 private:
  absl::Status ScheduleDue() {
    absl::MutexLock lock(&mutex_);
    for (const int k : std::exchange(due_, {})) {
      // The queue has room for all steps, so this does not block.
      const absl::StatusOr<RemoteValue> value = coordinator_.Schedule(
          function_,
          {Tensor::FromValues<int64_t>({kShardCount}, {k, step_count_ + k})},
          absl::Now() + kPatience);
      history_.steps[k].scheduled = value.status();
      RETURN_IF_ERROR(value.status());
      values_[k] = *value;
    }
    return absl::OkStatus();
  }

  // There are no checkpoints, so that every step that has succeeded is undone.
  void OnRollback(const RollbackReport& report) {
    absl::MutexLock lock(&mutex_);
    ++history_.rollback_count;
    int64_t undone_count = 0;
    for (int k = 0; k < step_count_; ++k) {
      if (!values_[k].valid() || !values_[k].done()) continue;
      ++undone_count;
      due_.push_back(k);
      values_[k] = RemoteValue();
    }
    if (undone_count != report.undone_count) {
      history_.wrong_reports.push_back(
          absl::StrCat("a rollback reported ", report.undone_count,
                       " undone steps; the program knew of ", undone_count));
    }
  }

  void FetchResults() {
    absl::MutexLock lock(&mutex_);
    for (int k = 0; k < step_count_; ++k) {
      StepHistory::Step& step = history_.steps[k];
      if (!values_[k].valid() || !values_[k].done()) continue;
      step.has_ended = true;
      const auto rows = coordinator_.Fetch(values_[k], absl::Now() + kPatience);
      step.outcome = rows.status();
      if (rows.ok()) step.result = rows->flat<int64_t>()[0];
    }
  }

  ClusterCoordinator& coordinator_;
  VariableStore& store_;
  const ServerRecovery& recovery_;
  const CountingProgram& program_;
  const int step_count_;
  StepHistory& history_;
  const Function function_;
  mutable absl::Mutex mutex_;
  std::vector<RemoteValue> values_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> due_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status Train(const ClusterSpec& cluster, const TaskIdentity& self,
                   Network* network, int step_count, StepHistory* history,
                   TrainingReport* report) {
  ClusterConnection::Options options;
  options.cluster = cluster;
  options.self = self;
  options.shared_memory = false;
  options.attempts_per_closure_max = 1000;
  ASSIGN_OR_RETURN(options.partitioner,
                   MakeFixedShardsPartitioner(kShardCount));
  ASSIGN_OR_RETURN(std::shared_ptr<ClusterConnection> connection,
                   ClusterConnection::Open(
                       options, network, Clock::Real(),
                       [](absl::string_view line) { LOG(INFO) << line; }));
  ParameterServerStrategy strategy(connection, ParameterServerStrategyOptions(),
                                   Clock::Real());
  const CountingProgram program(step_count);
  ClusterCoordinator coordinator(strategy);
  const absl::Status status =
      CountingLoop(&coordinator, &strategy.variables(), &connection->recovery(),
                   program, step_count, history)
          .Run();
  // After an assignment, the loss of a server ends training without a
  // checkpoint, which is no violation.
  if (status.ok()) {
    AssignInOrder(program, strategy.variables(), history).IgnoreError();
  }
  const ClosureDispatcher::Counters counters =
      connection->dispatcher().counters();
  report->retried_step_count = counters.requeued_count;
  report->lost_worker_count = counters.lost_count;
  const absl::Status end = connection->WithLoss(status);
  connection->EndJob(end);
  return end;
}

}  // namespace muster::sim
