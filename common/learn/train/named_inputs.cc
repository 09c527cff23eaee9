#include "common/learn/train/named_inputs.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/components.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/sequential.h"

namespace muster {
namespace {

using Names = absl::Span<const std::string>;

bool Has(Names names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string Quoted(Names names) {
  return ComponentNamesToString(names, names.size());
}

// Components sorted by their purpose.
struct Sorted {
  std::vector<int> indices;  // Indices of inputs, then of labels.
  std::vector<std::string> missing_inputs;
  std::vector<std::string> labels;
  std::vector<std::string> missing_labels;
  std::vector<std::string> unknown;
};

Sorted Sort(Names inputs, Names outputs, const ElementSpec& spec) {
  Sorted sorted;
  for (const std::string& input : inputs) {
    const absl::StatusOr<int> found = spec.Find(input);
    if (found.ok()) {
      sorted.indices.push_back(*found);
    } else {
      sorted.missing_inputs.push_back(input);
    }
  }
  for (const std::string& output : outputs) {
    const absl::StatusOr<int> found = spec.Find(output);
    if (!found.ok() || Has(inputs, output)) {
      sorted.missing_labels.push_back(output);
      continue;
    }
    sorted.labels.push_back(output);
    sorted.indices.push_back(*found);
  }
  for (const std::string& name : spec.names) {
    if (name.empty() || Has(inputs, name) || Has(outputs, name)) continue;
    sorted.unknown.push_back(name);
  }
  return sorted;
}

absl::Status CheckSorted(const Sorted& sorted, Names inputs, Names outputs,
                         const ElementSpec& spec) {
  std::vector<std::string> mistakes;
  if (!sorted.missing_inputs.empty()) {
    mistakes.push_back(
        absl::StrCat("it lacks the input ", Quoted(sorted.missing_inputs)));
  }
  if (!sorted.unknown.empty()) {
    mistakes.push_back(absl::StrCat(Quoted(sorted.unknown),
                                    " is neither an input nor an output"));
  }
  if (!sorted.labels.empty() && !sorted.missing_labels.empty()) {
    mistakes.push_back(
        absl::StrCat("it has labels for the output ", Quoted(sorted.labels),
                     " by name, and none for ", Quoted(sorted.missing_labels)));
  }
  if (mistakes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the data has the components ",
      ComponentNamesToString(spec.names, spec.types.size()),
      " and the model the inputs ", Quoted(inputs),
      outputs.empty() ? "" : absl::StrCat(" and outputs ", Quoted(outputs)),
      ": ", absl::StrJoin(mistakes, ", and "),
      "; expected a component of the name of each input, and labels of outputs "
      "with the name of their output or without one. Change them with "
      "Rename(), Select() or Drop(), or feed by position after "
      "WithNames({})"));
}

}  // namespace

std::vector<const Layer*> InputLayersOf(const Layer& model) {
  std::vector<const Layer*> layers;
  if (const auto* functional = dynamic_cast<const FunctionalLayer*>(&model)) {
    for (const LayerOutput& input : functional->inputs()) {
      layers.push_back(input.call()->layer.get());
    }
  } else if (const auto* sequential =
                 dynamic_cast<const SequentialLayer*>(&model)) {
    if (sequential->input() != nullptr) return {sequential->input().get()};
    if (!sequential->layers().empty()) {
      return InputLayersOf(*sequential->layers().front());
    }
  }
  const bool are_inputs =
      std::all_of(layers.begin(), layers.end(), [](const Layer* layer) {
        return dynamic_cast<const InputLayer*>(layer) != nullptr;
      });
  return are_inputs ? layers : std::vector<const Layer*>();
}

absl::StatusOr<Dataset> InOrderOfModel(const Layer& model,
                                       const Dataset& data) {
  if (data.component_names().empty()) return data;
  std::vector<std::string> inputs;
  for (const Layer* const layer : InputLayersOf(model)) {
    if (layer->name().empty()) return data;
    inputs.push_back(layer->name());
  }
  return InOrderOfNames(inputs, model.output_names(), data);
}

absl::StatusOr<Dataset> InOrderOfNames(Names inputs, Names outputs,
                                       const Dataset& data) {
  const ElementSpec spec = data.element_spec();
  if (inputs.empty() || spec.names.empty()) return data;
  Sorted sorted = Sort(inputs, outputs, spec);
  RETURN_IF_ERROR(CheckSorted(sorted, inputs, outputs, spec));
  for (size_t c = 0; c < spec.names.size(); ++c) {
    if (spec.names[c].empty()) sorted.indices.push_back(static_cast<int>(c));
  }
  if (std::is_sorted(sorted.indices.begin(), sorted.indices.end())) return data;
  return data.SelectComponents(std::move(sorted.indices));
}

}  // namespace muster
