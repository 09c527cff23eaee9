#include "worker/step_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/rpc/fault_point.h"

namespace muster {
namespace {

bool HasVariables(const Graph& graph) {
  return std::any_of(
      graph.nodes.begin(), graph.nodes.end(),
      [](const Node& node) { return node.attributes.Has(kVariableAttribute); });
}

}  // namespace

absl::Status StepRunner::Run(const std::shared_ptr<const CachedStep>& step,
                             absl::Span<const StepArgument> arguments,
                             const RunOptions& options,
                             std::vector<Tensor>* results) {
  ASSIGN_OR_RETURN(Compiled* const compiled, Compile(step));
  RETURN_IF_ERROR(FaultPoint("worker.before_input"));
  RETURN_IF_ERROR(TakeElements(arguments, compiled));
  RETURN_IF_ERROR(FillParameters(arguments, compiled));
  RETURN_IF_ERROR(FaultPoint("worker.before_step"));
  RETURN_IF_ERROR(
      compiled->executable->Run(compiled->parameters, options, results));
  // Releases the elements, so that the iterators can reuse their memory.
  compiled->parameters.assign(compiled->parameters.size(), Tensor());
  return FaultPoint("worker.after_step");
}

absl::StatusOr<StepRunner::Compiled*> StepRunner::Compile(
    const std::shared_ptr<const CachedStep>& step) {
  std::unique_ptr<Compiled>& compiled = compiled_[step->fingerprint];
  if (compiled != nullptr) return compiled.get();
  VariableStore* store = nullptr;
  if (HasVariables(step->graph)) {
    ASSIGN_OR_RETURN(store, environment_.variables->Store());
  }
  auto made = std::make_unique<Compiled>();
  made->step = step;
  ASSIGN_OR_RETURN(
      made->executable,
      Executable::Compile(step->graph, *environment_.ops, *environment_.kernels,
                          store, environment_.executable));
  const auto& argument_signatures = step->signature.arguments();
  made->elements.resize(argument_signatures.size());
  for (size_t i = 0; i < argument_signatures.size(); ++i) {
    made->elements[i].resize(argument_signatures[i].element_count);
  }
  made->parameters.resize(step->signature.parameters().size());
  compiled = std::move(made);
  return compiled.get();
}

absl::Status StepRunner::TakeElements(absl::Span<const StepArgument> arguments,
                                      Compiled* compiled) {
  const auto& signatures = compiled->step->signature.arguments();
  if (arguments.size() < signatures.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("step \"", compiled->step->graph.name, "\" takes ",
                     signatures.size(), " arguments; got ", arguments.size()));
  }
  for (size_t i = 0; i < signatures.size(); ++i) {
    const bool wants_iterator = signatures[i].element_count > 0;
    const auto* const iterator =
        std::get_if<std::shared_ptr<SessionIterator>>(&arguments[i]);
    if (wants_iterator != (iterator != nullptr)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "step \"", compiled->step->graph.name, "\": argument ", i, " is ",
          wants_iterator ? "a tensor; expected an iterator"
                         : "an iterator; expected a tensor"));
    }
    for (Element& element : compiled->elements[i]) {
      RETURN_IF_ERROR((*iterator)->Next(&element));
      if (static_cast<int>(element.size()) < signatures[i].component_count) {
        return absl::InvalidArgumentError(absl::StrCat(
            "step \"", compiled->step->graph.name, "\": the elements of ",
            "argument ", i, " have ", element.size(),
            " components; the step uses ", signatures[i].component_count));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status StepRunner::FillParameters(
    absl::Span<const StepArgument> arguments, Compiled* compiled) {
  const auto& sources = compiled->step->signature.parameters();
  for (size_t i = 0; i < sources.size(); ++i) {
    const ParameterSource& source = sources[i];
    compiled->parameters[i] =
        source.element < 0
            ? std::get<Tensor>(arguments[source.argument])
            : compiled
                  ->elements[source.argument][source.element][source.component];
  }
  return absl::OkStatus();
}

}  // namespace muster
