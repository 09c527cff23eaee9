// Counts its own steps in variables: SGD with learning rate 1 and a gradient of
// exactly -1 adds one for each step that is applied, and float32 counts
// integers exactly. One lost or doubled update makes the count another.
//
//   --set closures=500          steps at least
//   --set recoveries=0          goes on until so many lost workers have come
//                               back
//   --set heartbeat_timeout=5s  a worker silent for longer is lost
//
// Prints a line for each round of steps that is through.

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/variables/variable_store.h"
#include "muster.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

constexpr int kClosuresPerRound = 25;
constexpr int64_t kTableRows = 10;

const VariableHandle kSum = {"sum", {DType::kFloat32, {6, 2}}};
const VariableHandle kTable = {"table", {DType::kFloat32, {kTableRows, 3}}};
const VariableHandle kCounter = {"counter", {DType::kFloat32, {}}};

struct Settings {
  int64_t closure_count = 500;
  int64_t recovery_count = 0;
  absl::Duration heartbeat_timeout = absl::Seconds(5);
};

absl::StatusOr<Settings> ReadSettings(const Task& task) {
  Settings settings;
  const auto is_set = [&](absl::string_view name) {
    return !task.flag(name).empty();
  };
  if ((is_set("closures") &&
       !absl::SimpleAtoi(task.flag("closures"), &settings.closure_count)) ||
      (is_set("recoveries") &&
       !absl::SimpleAtoi(task.flag("recoveries"), &settings.recovery_count)) ||
      (is_set("heartbeat_timeout") &&
       !absl::ParseDuration(task.flag("heartbeat_timeout"),
                            &settings.heartbeat_timeout))) {
    return absl::InvalidArgumentError(
        "expected --set closures=500 recoveries=0 heartbeat_timeout=5s");
  }
  return settings;
}

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

// Adds one to every element of everything, each in another way.
Value CountOne(GraphBuilder& builder) {
  const Value sum = ReadVariable(builder, kSum);
  ApplyGradient(kSum, OnesLike(sum) * -1.0f);
  Tensor rows(DType::kInt64, {kTableRows});
  for (int64_t i = 0; i < kTableRows; ++i) rows.mutable_flat<int64_t>()[i] = i;
  const Value ids = builder.Constant(rows);
  ApplySparseGradient(kTable, OnesLike(GatherVariable(kTable, ids)) * -1.0f,
                      ids);
  const Value counter = ReadVariable(builder, kCounter);
  AssignAddVariable(kCounter, builder.Constant(Tensor::Scalar(1.0f)));
  return counter;
}

absl::Status ExpectAllEqual(VariableStore& variables, int64_t expected) {
  for (const VariableHandle& variable : {kSum, kTable, kCounter}) {
    ASSIGN_OR_RETURN(const Tensor value, variables.Read(variable.name));
    int64_t index = 0;
    for (const float element : value.flat<float>()) {
      if (element != static_cast<float>(expected)) {
        return absl::InternalError(
            absl::StrCat("element ", index, " of ", variable.name, " is ",
                         element, " after ", expected, " closures"));
      }
      ++index;
    }
  }
  return absl::OkStatus();
}

absl::Status Count(Task& task) {
  ASSIGN_OR_RETURN(const Settings settings, ReadSettings(task));
  ParameterServerStrategyOptions options;
  ASSIGN_OR_RETURN(options.partitioner, MakeFixedShardsPartitioner(2));
  options.heartbeat_timeout = settings.heartbeat_timeout;
  options.attempts_per_step_max = 1000;
  ASSIGN_OR_RETURN(auto strategy,
                   ParameterServerStrategy::Create(task, options));
  VariableStore& variables = strategy->variables();
  for (const VariableHandle& variable : {kSum, kTable, kCounter}) {
    RETURN_IF_ERROR(variables.Create(ZeroSpec(variable)));
  }
  RETURN_IF_ERROR(variables.SetOptimizer(Sgd({.learning_rate = 1.0})));

  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  ClusterCoordinator coordinator(*strategy);
  const Function step = Function::Of(
      "count", [](GraphBuilder& builder) { return CountOne(builder); });
  int64_t scheduled_count = 0;
  // The next round is queued before the last one is through, so that workers
  // are never idle.
  RemoteValue last;
  while (scheduled_count < settings.closure_count ||
         strategy->Report().recovery_count < settings.recovery_count) {
    const RemoteValue last_of_round_before = last;
    for (int i = 0; i < kClosuresPerRound; ++i) {
      ASSIGN_OR_RETURN(last, coordinator.Schedule(step, {}, deadline));
    }
    if (scheduled_count > 0) {
      RETURN_IF_ERROR(
          coordinator.Fetch(last_of_round_before, deadline).status());
      std::cout << "through: " << scheduled_count << std::endl;
    }
    scheduled_count += kClosuresPerRound;
  }
  RETURN_IF_ERROR(coordinator.Join(deadline));
  RETURN_IF_ERROR(ExpectAllEqual(variables, scheduled_count));
  std::cout << "every closure counted once: " << scheduled_count << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, muster::Count);
}
