#include "coordinator/function.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/base/status_macros.h"
#include "worker/client/step_signature.h"

namespace muster {

Function::Function(absl::string_view name, int parameter_count, Trace trace)
    : state_(std::make_shared<State>()) {
  state_->name = std::string(name);
  state_->parameter_count = parameter_count;
  state_->trace = std::move(trace);
}

absl::StatusOr<uint32_t> Function::Resolve(
    absl::Span<const FunctionArgument> arguments,
    absl::FunctionRef<uint32_t(const Graph&)> add) const {
  if (state_ == nullptr) {
    return absl::InvalidArgumentError("this Function is default-constructed");
  }
  if (static_cast<int>(arguments.size()) != state_->parameter_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "function \"", state_->name, "\" takes ", state_->parameter_count,
        " arguments and was given ", arguments.size()));
  }
  absl::MutexLock lock(&state_->mutex);
  for (const Traced& traced : state_->traced) {
    if (std::equal(traced.types.begin(), traced.types.end(), arguments.begin(),
                   arguments.end(), Matches)) {
      return traced.function_id;
    }
  }
  Traced traced;
  for (const FunctionArgument& argument : arguments) {
    traced.types.push_back(TypeOf(argument));
    if (traced.types.back().types.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("function \"", state_->name, "\": argument ",
                       traced.types.size() - 1, " is empty"));
    }
  }
  ASSIGN_OR_RETURN(const Graph graph, TraceFor(traced.types));
  traced.function_id = add(graph);
  state_->traced.push_back(traced);
  return traced.function_id;
}

bool Function::Matches(const ArgumentType& type,
                       const FunctionArgument& argument) {
  if (const auto* const iterator =
          std::get_if<PerWorker<Iterator>>(&argument)) {
    return type.is_iterator && type.types == iterator->element_types();
  }
  if (type.is_iterator) return false;
  if (const auto* const values = std::get_if<PerWorker<Tensor>>(&argument)) {
    return !values->values().empty() &&
           type.types[0] == values->values()[0].type();
  }
  return type.types[0] == std::get<Tensor>(argument).type();
}

Function::ArgumentType Function::TypeOf(const FunctionArgument& argument) {
  if (const auto* const iterator =
          std::get_if<PerWorker<Iterator>>(&argument)) {
    return {.is_iterator = true, .types = iterator->element_types()};
  }
  if (const auto* const values = std::get_if<PerWorker<Tensor>>(&argument)) {
    if (values->values().empty()) return {};
    return {.types = {values->values()[0].type()}};
  }
  const Tensor& tensor = std::get<Tensor>(argument);
  if (!tensor.IsValid()) return {};
  return {.types = {tensor.type()}};
}

absl::StatusOr<Graph> Function::TraceFor(
    const std::vector<ArgumentType>& types) const {
  GraphBuilder builder(&BuiltinOps(), state_->name);
  std::vector<TracedArgument> arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    const int position = static_cast<int>(i);
    if (types[i].is_iterator) {
      arguments.push_back(Iterator(&builder, position, types[i].types));
    } else {
      arguments.push_back(
          builder.Parameter(absl::StrCat("argument_", i), types[i].types[0],
                            ToAttributes({.argument = position})));
    }
  }
  state_->trace(builder, arguments);
  return std::move(builder).Build();
}

namespace internal {

void ReportKinds(GraphBuilder& builder) {
  builder.ReportError(absl::InvalidArgumentError(
      "a step function that takes an Iterator was given a tensor, or the other "
      "way round"));
}

}  // namespace internal
}  // namespace muster
