#include "tests/simulation/cluster/training.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"
#include "muster.h"
#include "proto/variable.pb.h"

namespace muster::sim {
namespace {

// Longer than any fault.
constexpr absl::Duration kPatience = absl::Minutes(20);
constexpr int64_t kSumCount = 4;

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
};

absl::Status ReadVariables(const CountingProgram& program, VariableStore& store,
                           StepHistory* history) {
  ASSIGN_OR_RETURN(const Tensor counts, store.Read(program.counts.name));
  ASSIGN_OR_RETURN(const Tensor sums, store.Read(program.sums.name));
  const auto all = counts.flat<float>();
  const size_t per_server = all.size() / kShardCount;
  for (int server = 0; server < kShardCount; ++server) {
    const auto begin =
        all.begin() +
        static_cast<ptrdiff_t>(static_cast<size_t>(server) * per_server);
    history->counts.emplace_back(begin,
                                 begin + static_cast<ptrdiff_t>(per_server));
  }
  history->sums.assign(sums.flat<float>().begin(), sums.flat<float>().end());
  return absl::OkStatus();
}

absl::Status RunSteps(ClusterCoordinator& coordinator,
                      const CountingProgram& program, int step_count,
                      StepHistory* history) {
  const Function function = program.Step();
  history->steps.resize(static_cast<size_t>(step_count));
  std::vector<RemoteValue> values(static_cast<size_t>(step_count));
  for (int k = 0; k < step_count; ++k) {
    const absl::StatusOr<RemoteValue> value = coordinator.Schedule(
        function, {Tensor::FromValues<int64_t>({2}, {k, step_count + k})},
        absl::Now() + kPatience);
    history->steps[k].scheduled = value.status();
    if (value.ok()) values[k] = *value;
  }
  const absl::Status joined = coordinator.Join(absl::Now() + kPatience);
  for (int k = 0; k < step_count; ++k) {
    StepHistory::Step& step = history->steps[k];
    if (!values[k].valid() || !values[k].done()) continue;
    step.has_ended = true;
    const auto rows = coordinator.Fetch(values[k], absl::Now() + kPatience);
    step.outcome = rows.status();
    if (rows.ok()) step.result = rows->flat<int64_t>()[0];
  }
  return joined;
}

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
  RETURN_IF_ERROR(program.CreateVariables(strategy.variables()));
  ClusterCoordinator coordinator(strategy);
  absl::Status status = RunSteps(coordinator, program, step_count, history);
  if (status.ok()) {
    status = ReadVariables(program, strategy.variables(), history);
  }
  const ClosureDispatcher::Counters counters =
      connection->dispatcher().counters();
  report->retried_step_count = counters.requeued_count;
  report->lost_worker_count = counters.lost_count;
  connection->EndJob(status);
  return status;
}

}  // namespace muster::sim
