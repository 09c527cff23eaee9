#include "tests/simulation/cluster/training.h"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"
#include "muster.h"
#include "proto/variable.pb.h"

namespace muster::sim {
namespace {

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

// The variables and the step of a training with `step_count` steps per
// coordinator.
struct CountingProgram {
  explicit CountingProgram(int step_count)
      : row_count(static_cast<int64_t>(kCoordinatorCountMax) * step_count),
        counts{"counts", {DType::kFloat32, {kShardCount * row_count, 1}}} {}

  absl::Status CreateVariables(VariableStore& store) const {
    for (const VariableHandle* variable :
         {&counts, &sums, &pair[0], &pair[1], &assigned}) {
      RETURN_IF_ERROR(store.Create(ZeroSpec(*variable)));
    }
    return store.SetOptimizer(Sgd({.learning_rate = 1.0}));
  }

  // The argument has the rows of `counts` that the step increments, of which
  // the first is its number.
  Function Step() const {
    return Function::Of("step", [*this](GraphBuilder& builder, Value rows) {
      const Value ones = OnesLike(GatherVariable(counts, rows));
      ApplySparseGradient(counts, ones * -1.0f, rows);
      const Value number = Sum(Cast(rows, DType::kFloat32) *
                               builder.Constant(Tensor::FromValues<float>(
                                   {kShardCount}, {1, 0}))) +
                           1.0f;
      ApplyGradient(sums,
                    OnesLike(ReadVariable(builder, sums)) * number * -1.0f);
      for (const VariableHandle& each : pair) {
        AssignVariable(each, OnesLike(ReadVariable(builder, each)) * number);
      }
      return rows;
    });
  }

  const int64_t row_count;  // On each server.
  const VariableHandle counts;
  const VariableHandle sums = {"sums", {DType::kFloat32, {kSumCount}}};
  const VariableHandle pair[2] = {{"first", {DType::kFloat32, {kShardCount}}},
                                  {"second", {DType::kFloat32, {kShardCount}}}};
  const VariableHandle assigned = {"assigned",
                                   {DType::kFloat32, {kShardCount}}};
};

// Reads a variable, split by server.
absl::StatusOr<std::vector<std::vector<float>>> ReadShards(
    const VariableHandle& variable, VariableStore& store) {
  ASSIGN_OR_RETURN(const Tensor value, store.Read(variable.name));
  const auto all = value.flat<float>();
  const size_t per_server = all.size() / kShardCount;
  std::vector<std::vector<float>> shards;
  for (size_t server = 0; server < kShardCount; ++server) {
    const auto* const begin = all.data() + server * per_server;
    shards.emplace_back(begin, begin + per_server);
  }
  return shards;
}

absl::Status ReadVariables(const CountingProgram& program, VariableStore& store,
                           StepHistory* history) {
  ASSIGN_OR_RETURN(history->counts, ReadShards(program.counts, store));
  ASSIGN_OR_RETURN(history->sums, ReadShards(program.sums, store));
  ASSIGN_OR_RETURN(history->pair[0], ReadShards(program.pair[0], store));
  ASSIGN_OR_RETURN(history->pair[1], ReadShards(program.pair[1], store));
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

// True for the newest coordinator of the job. One that was replaced changes its
// record no more.
bool IsNewest(const StepHistory& history, const JobRecord& record) {
  return history.job_id == record.job_id &&
         history.coordinator + 1 == record.coordinator_epoch;
}

void SetMayContinue(bool may_continue, const StepHistory& history,
                    JobRecord* record) {
  if (IsNewest(history, *record)) record->may_continue = may_continue;
}

// A training loop as a user writes it: runs each step, and runs those again
// that a rollback has undone.
class CountingLoop {
 public:
  CountingLoop(ClusterCoordinator* coordinator, VariableStore* store,
               const CountingProgram& program, const TrainingOptions& options,
               JobRecord* record, StepHistory* history)
      : coordinator_(*coordinator),
        store_(*store),
        program_(program),
        options_(options),
        record_(*record),
        history_(*history),
        function_(program.Step()),
        values_(history->steps.size()) {
    for (size_t k = 0; k < values_.size(); ++k) due_.push_back(k);
    coordinator_.OnRollback(
        [this](const RollbackReport& report) { OnRollback(report); });
  }
  ~CountingLoop() { coordinator_.OnRollback(nullptr); }
  CountingLoop(const CountingLoop&) = delete;
  CountingLoop& operator=(const CountingLoop&) = delete;

  absl::Status Run() {
    RETURN_IF_ERROR(program_.CreateVariables(store_));
    SetMayContinue(rollback_count() == 0, history_, &record_);
    // Ends when no rollback has happened since the last steps were scheduled.
    // Each rollback is caused by a fault, of which there are a few.
    int seen_rollback_count = -1;
    while (seen_rollback_count != rollback_count() || HasDue()) {
      seen_rollback_count = rollback_count();
      RETURN_IF_ERROR(ScheduleDue());
      RETURN_IF_ERROR(coordinator_.Join());
      Acknowledge(seen_rollback_count);
      RETURN_IF_ERROR(ReadVariables(program_, store_, &history_));
      CheckRead(seen_rollback_count);
    }
    FetchResults();
    return absl::OkStatus();
  }

  int rollback_count() const {
    absl::MutexLock lock(&mutex_);
    return history_.rollback_count;
  }

 private:
  size_t RowOf(size_t step) const {
    return history_.coordinator * history_.steps.size() + step;
  }

  bool HasDue() const {
    absl::MutexLock lock(&mutex_);
    return !due_.empty();
  }

  absl::Status ScheduleDue() {
    absl::MutexLock lock(&mutex_);
    for (int i = 0; i < options_.steps_per_join && !due_.empty(); ++i) {
      const size_t k = due_.front();
      due_.pop_front();
      const auto row = static_cast<int64_t>(RowOf(k));
      // The queue has room for all steps, so this does not block.
      const absl::StatusOr<RemoteValue> value = coordinator_.Schedule(
          function_, {Tensor::FromValues<int64_t>(
                         {kShardCount}, {row, program_.row_count + row})});
      history_.steps[k].scheduled = value.status();
      RETURN_IF_ERROR(value.status());
      values_[k] = *value;
    }
    return absl::OkStatus();
  }

  void Acknowledge(int seen_rollback_count) {
    absl::MutexLock lock(&mutex_);
    if (seen_rollback_count != history_.rollback_count) return;
    for (size_t k = 0; k < values_.size(); ++k) {
      history_.steps[k].is_acknowledged = values_[k].valid();
    }
  }

  // What was read has the effects of all acknowledged steps, if the program has
  // heard of no rollback.
  void CheckRead(int seen_rollback_count) {
    absl::MutexLock lock(&mutex_);
    if (seen_rollback_count != history_.rollback_count) return;
    if (history_.pair[0] != history_.pair[1]) {
      history_.wrong_answers.push_back(
          "two steps that assign two variables did so in different orders");
    }
    for (size_t server = 0; server < history_.counts.size(); ++server) {
      for (size_t k = 0; k < values_.size(); ++k) {
        if (!history_.steps[k].is_acknowledged ||
            history_.counts[server][RowOf(k)] == 1) {
          continue;
        }
        history_.wrong_answers.push_back(absl::StrCat(
            "a read after Join() has the push of step ", k, " to server ",
            server, " ", history_.counts[server][RowOf(k)], " times"));
      }
    }
  }

  // There are no checkpoints, so that every step that has succeeded is undone.
  void OnRollback(const RollbackReport& report) {
    absl::MutexLock lock(&mutex_);
    SetMayContinue(false, history_, &record_);
    ++history_.rollback_count;
    int64_t undone_count = 0;
    for (size_t k = 0; k < values_.size(); ++k) {
      history_.steps[k].is_acknowledged = false;
      if (!values_[k].valid() || !values_[k].done()) continue;
      ++undone_count;
      due_.push_back(k);
      values_[k] = RemoteValue();
    }
    if (undone_count != report.undone_count) {
      history_.wrong_answers.push_back(
          absl::StrCat("a rollback reported ", report.undone_count,
                       " undone steps; the program knew of ", undone_count));
    }
  }

  void FetchResults() {
    absl::MutexLock lock(&mutex_);
    for (size_t k = 0; k < values_.size(); ++k) {
      StepHistory::Step& step = history_.steps[k];
      if (!values_[k].valid() || !values_[k].done()) continue;
      step.has_ended = true;
      const auto rows = coordinator_.Fetch(values_[k]);
      step.outcome = rows.status();
      if (rows.ok()) step.result = rows->flat<int64_t>()[0];
    }
  }

  ClusterCoordinator& coordinator_;
  VariableStore& store_;
  const CountingProgram& program_;
  const TrainingOptions options_;
  JobRecord& record_;
  StepHistory& history_;
  const Function function_;
  mutable absl::Mutex mutex_;
  std::vector<RemoteValue> values_ ABSL_GUARDED_BY(mutex_);
  std::deque<size_t> due_ ABSL_GUARDED_BY(mutex_);
};

// Makes the calling coordinator the next one of the job.
ClusterConnection::Options BeginCoordinator(const TrainingOptions& training,
                                            JobRecord* record,
                                            StepHistory* history) {
  if (!record->may_continue ||
      record->coordinator_epoch >= kCoordinatorCountMax) {
    *record = {.job_id = absl::StrCat(absl::Hex(RandomIdentity()))};
  }
  record->may_continue = false;
  ++record->coordinator_epoch;
  history->job_id = record->job_id;
  history->coordinator = record->coordinator_epoch - 1;
  history->steps.resize(static_cast<size_t>(training.step_count));
  ClusterConnection::Options options;
  options.job_id = record->job_id;
  options.coordinator_epoch = record->coordinator_epoch;
  options.closure_ids = {.first_id = record->closure_id_limit,
                         .record = [record, history](uint64_t limit) {
                           if (!IsNewest(*history, *record)) {
                             return absl::AbortedError("was replaced");
                           }
                           record->closure_id_limit = limit;
                           return absl::OkStatus();
                         }};
  options.shared_memory = false;
  options.attempts_per_closure_max = 1000;
  options.closures_in_flight = training.closures_in_flight;
  return options;
}

}  // namespace

absl::Status Train(const ClusterSpec& cluster, const TaskIdentity& self,
                   Network* network, const TrainingOptions& training,
                   JobRecord* record, RunHistory* run, TrainingReport* report) {
  run->coordinators.push_back(std::make_unique<StepHistory>());
  StepHistory* const history = run->coordinators.back().get();
  ClusterConnection::Options options =
      BeginCoordinator(training, record, history);
  options.cluster = cluster;
  options.server_copy_count = training.server_copy_count;
  options.self = self;
  ASSIGN_OR_RETURN(options.partitioner,
                   MakeFixedShardsPartitioner(kShardCount));
  ASSIGN_OR_RETURN(std::shared_ptr<ClusterConnection> connection,
                   ClusterConnection::Open(
                       options, network, Clock::Real(),
                       [](absl::string_view line) { LOG(INFO) << line; }));
  ParameterServerStrategy strategy(connection, ParameterServerStrategyOptions(),
                                   Clock::Real());
  const CountingProgram program(training.step_count);
  ClusterCoordinator coordinator(strategy);
  const absl::Status status = CountingLoop(&coordinator, &strategy.variables(),
                                           program, training, record, history)
                                  .Run();
  // After an assignment, the loss of a server ends training without a
  // checkpoint, which is no violation.
  if (status.ok()) {
    SetMayContinue(false, *history, record);
    AssignInOrder(program, strategy.variables(), history).IgnoreError();
  }
  const ClosureDispatcher::Counters counters =
      connection->dispatcher().counters();
  report->retried_step_count += counters.requeued_count;
  report->lost_worker_count += counters.lost_count;
  report->lost_server_count += connection->server_watch().counters().lost_count;
  report->takeover_count += connection->recovery().restored_count();
  const absl::Status end = connection->WithLoss(status);
  connection->EndJob(end);
  return end;
}

}  // namespace muster::sim
