#include "worker/client/step_signature.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr absl::string_view kArgument = "argument";
constexpr absl::string_view kElement = "element";
constexpr absl::string_view kComponent = "component";

// Positions determine the sizes of tables, so they are limited.
constexpr int64_t kPositionMax = 4096;

absl::StatusOr<int> Position(const Node& node, absl::string_view name,
                             int64_t value) {
  if (value >= 0 && value < kPositionMax) return static_cast<int>(value);
  return absl::InvalidArgumentError(
      absl::StrCat("parameter \"", node.name, "\": ", name, " is ", value,
                   "; expected 0 to ", kPositionMax - 1));
}

template <typename SourceOfParameter>
Graph FeedFrom(Graph graph, SourceOfParameter source_of) {
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    Node& node = graph.nodes[graph.parameters[i]];
    const Attributes attributes = ToAttributes(source_of(static_cast<int>(i)));
    for (const auto& [name, value] : attributes.values()) {
      node.attributes.Set(name, value);
    }
  }
  return graph;
}

}  // namespace

Attributes ToAttributes(const ParameterSource& source) {
  Attributes attributes;
  attributes.Set(kArgument, int64_t{source.argument});
  if (source.element >= 0) {
    attributes.Set(kElement, int64_t{source.element});
    attributes.Set(kComponent, int64_t{source.component});
  }
  return attributes;
}

absl::StatusOr<StepSignature> StepSignature::Create(const Graph& graph) {
  StepSignature signature;
  std::vector<int> is_iterator;  // By argument: -1 if unknown, else 0 or 1.
  for (const int index : graph.parameters) {
    const Node& node = graph.nodes[index];
    ParameterSource source;
    ASSIGN_OR_RETURN(const int64_t argument,
                     node.attributes.Get<int64_t>(kArgument));
    ASSIGN_OR_RETURN(source.argument, Position(node, kArgument, argument));
    if (node.attributes.Has(kElement)) {
      ASSIGN_OR_RETURN(const int64_t element,
                       node.attributes.Get<int64_t>(kElement));
      ASSIGN_OR_RETURN(source.element, Position(node, kElement, element));
      ASSIGN_OR_RETURN(const int64_t component,
                       node.attributes.Get<int64_t>(kComponent));
      ASSIGN_OR_RETURN(source.component, Position(node, kComponent, component));
    }
    const size_t needed = static_cast<size_t>(source.argument) + 1;
    if (signature.arguments_.size() < needed) {
      signature.arguments_.resize(needed);
      is_iterator.resize(needed, -1);
    }
    const int kind = source.element >= 0 ? 1 : 0;
    int& known_kind = is_iterator[source.argument];
    if (known_kind >= 0 && known_kind != kind) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter \"", node.name, "\": argument ",
                       source.argument, " is both a tensor and an iterator"));
    }
    known_kind = kind;
    Argument& described = signature.arguments_[source.argument];
    if (kind == 1) {
      described.element_count =
          std::max(described.element_count, source.element + 1);
      described.component_count =
          std::max(described.component_count, source.component + 1);
    }
    signature.parameters_.push_back(source);
  }
  return signature;
}

Graph FeedFromIterator(Graph graph) {
  return FeedFrom(std::move(graph), [](int parameter) -> ParameterSource {
    return {.argument = 0, .element = 0, .component = parameter};
  });
}

Graph FeedFromTensors(Graph graph) {
  return FeedFrom(std::move(graph), [](int parameter) -> ParameterSource {
    return {.argument = parameter};
  });
}

}  // namespace muster
