#include "common/learn/strategy/replica/step_function.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/builtin_ops.h"

namespace muster {

StepFunction::StepFunction(absl::string_view name, int parameter_count,
                           Trace trace)
    : state_(std::make_shared<State>(
          State{std::string(name), parameter_count, std::move(trace)})) {}

absl::StatusOr<Graph> StepFunction::TraceFor(
    absl::Span<const TensorType> arguments, int num_replicas_in_sync) const {
  if (!valid()) {
    return absl::InvalidArgumentError(
        "this StepFunction is default-constructed");
  }
  if (static_cast<int>(arguments.size()) != parameter_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("step \"", name(), "\" takes ", parameter_count(),
                     " arguments and was given ", arguments.size()));
  }
  GraphBuilder builder(&BuiltinOps(), name());
  std::vector<Value> values;
  for (const TensorType& type : arguments) {
    values.push_back(
        builder.Parameter(absl::StrCat("argument_", values.size()), type));
  }
  {
    const ReplicaTracingScope scope;
    state_->trace(ReplicaContext(&builder, num_replicas_in_sync), values);
  }
  return std::move(builder).Build();
}

}  // namespace muster
