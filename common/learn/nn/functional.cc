#include "common/learn/nn/functional.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/call_order.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/structure.h"

namespace muster {

FunctionalLayer::FunctionalLayer(LayerOutputs inputs, LayerOutputs outputs,
                                 const FunctionalOptions& options)
    : Layer(options.name),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      input_structure_(
          options.input_structure.value_or(Structure::Flat(inputs_.size()))),
      output_structure_(
          options.output_structure.value_or(Structure::Flat(outputs_.size()))) {
  status_ = Connect();
}

absl::Status FunctionalLayer::Connect() {
  if (input_structure_.leaf_count() != inputs_.size() ||
      output_structure_.leaf_count() != outputs_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the structures have ", input_structure_.leaf_count(), " inputs and ",
        output_structure_.leaf_count(), " outputs; the model has ",
        inputs_.size(), " and ", outputs_.size()));
  }
  ASSIGN_OR_RETURN(internal::CallOrder order,
                   internal::OrderCalls(inputs_, outputs_));
  calls_ = std::move(order.calls);
  for (LayerPtr& layer : order.layers) AddLayer(std::move(layer));
  return absl::OkStatus();
}

int FunctionalLayer::input_count() const {
  return status_.ok() ? static_cast<int>(inputs_.size()) : kAnyCount;
}

int FunctionalLayer::output_count() const {
  return status_.ok() ? static_cast<int>(outputs_.size()) : 1;
}

std::vector<TensorType> FunctionalLayer::input_types() const {
  std::vector<TensorType> types;
  for (const LayerOutput& input : inputs_) {
    if (input.call() == nullptr || !input.call()->inputs.empty()) return {};
    const std::vector<TensorType> type = input.call()->layer->input_types();
    if (type.size() != 1) return {};
    types.push_back(type.front());
  }
  return types;
}

std::vector<std::string> FunctionalLayer::output_names() const {
  std::vector<std::string> own_names;
  for (const LayerOutput& output : outputs_) {
    own_names.push_back(
        output.call() == nullptr ? "" : output.call()->layer->name());
  }
  if (!status_.ok()) return own_names;
  std::vector<std::string> names;
  for (std::string& name : output_structure_.LeafNames(own_names)) {
    const auto same_name_count = std::count(names.begin(), names.end(), name);
    if (same_name_count > 0) absl::StrAppend(&name, "_", same_name_count);
    names.push_back(std::move(name));
  }
  return names;
}

LayerOutput FunctionalLayer::OutputOf(absl::string_view layer_name) const {
  for (const std::shared_ptr<const LayerCall>& call : calls_) {
    if (call->layer->name() == layer_name) return LayerOutput(call, 0);
  }
  return LayerOutput();
}

std::vector<Value> FunctionalLayer::CallMany(absl::Span<const Value> inputs,
                                             const CallContext& context) {
  if (!status_.ok()) {
    inputs.front().builder()->ReportError(status_);
    return std::vector<Value>(output_count());
  }
  absl::flat_hash_map<LayerOutput, Value> values;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const LayerCall& call = *inputs_[i].call();
    values[inputs_[i]] =
        call.inputs.empty() ? (*call.layer)(inputs[i], context) : inputs[i];
  }
  for (const std::shared_ptr<const LayerCall>& call : calls_) {
    if (call->inputs.empty()) continue;
    std::vector<Value> arguments;
    for (const LayerOutput& input : call->inputs) {
      arguments.push_back(values[input]);
    }
    CallContext inner = context;
    inner.training = call->training.value_or(context.training);
    inner.reverse = call->is_reversed;
    const std::vector<Value> results = call->layer->CallAll(arguments, inner);
    for (size_t i = 0; i < results.size(); ++i) {
      values.emplace(LayerOutput(call, static_cast<int>(i)), results[i]);
    }
  }
  std::vector<Value> outputs;
  for (const LayerOutput& output : outputs_) outputs.push_back(values[output]);
  return outputs;
}

LayerPtrTo<FunctionalLayer> Functional(LayerOutputs inputs,
                                       LayerOutputs outputs,
                                       const FunctionalOptions& options) {
  return std::make_shared<FunctionalLayer>(std::move(inputs),
                                           std::move(outputs), options);
}

}  // namespace muster
