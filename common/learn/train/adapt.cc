#include "common/learn/train/adapt.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/control.h"
#include "common/compute/runtime/executable.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/adaptable_layer.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/chief_result.h"
#include "common/learn/strategy/worker_agreement.h"
#include "common/learn/train/named_inputs.h"
#include "proto/tensor.pb.h"

namespace muster {
namespace {

// Traces the output of the layers `before` for the first components of an
// element.
absl::StatusOr<Graph> TraceLayer(const LayerPtr& before,
                                 absl::Span<const TensorType> inputs) {
  GraphBuilder builder(&BuiltinOps(), "adapt");
  std::vector<Value> values;
  for (const TensorType& input : inputs) {
    values.push_back(
        builder.Parameter(absl::StrCat("x_", values.size()), input));
  }
  builder.AddResult(Identity((*before)(values, kInference)));
  return std::move(builder).Build();
}

absl::Status AdaptLayer(AdaptableLayer& layer, const LayerPtr& before,
                        const Dataset& data) {
  const std::string who = absl::StrCat(layer.kind(), " ", layer.name());
  if (data.Cardinality() == Dataset::kInfinite) {
    return absl::InvalidArgumentError(absl::StrCat(
        who,
        " cannot adapt to data that never ends; adapt it to part of the "
        "data, with Take()"));
  }
  const absl::Span<const TensorType> types = data.element_types();
  const size_t input_count =
      static_cast<size_t>(std::max(1, before->input_count()));
  if (types.size() < input_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has ", input_count, " inputs, the data's elements have ",
        types.size(), " components"));
  }
  ASSIGN_OR_RETURN(Graph graph,
                   TraceLayer(before, types.subspan(0, input_count)));
  if (!before->weights().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        who, " stands behind ", before->weights().front().name(),
        "; it can only adapt to data that no weights have changed"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable,
                   Executable::Compile(std::move(graph), BuiltinOps(),
                                       CpuKernels(), /*variables=*/nullptr));
  ASSIGN_OR_RETURN(const std::unique_ptr<DatasetIterator> iterator,
                   data.MakeIterator());
  Element element;
  std::vector<Tensor> results;
  bool saw_data = false;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_element, iterator->Next(&element));
    if (!has_element) break;
    saw_data = true;
    RETURN_IF_ERROR(executable->Run(
        absl::MakeConstSpan(element).subspan(0, input_count), {}, &results));
    RETURN_IF_ERROR(layer.Observe(results[0]));
  }
  if (!saw_data) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no data to adapt ", who, " to"));
  }
  return layer.FinishObserving();
}

AdaptableLayer* Adaptable(const LayerPtr& layer) {
  return dynamic_cast<AdaptableLayer*>(layer.get());
}

// Returns the adaptable layers of the model in the order of their calls. A
// layer that is called several times occurs once.
std::vector<AdaptableLayer*> AdaptableLayersOf(const LayerPtr& model) {
  std::vector<AdaptableLayer*> found;
  for (const LayerPtr& layer : model->layers()) {
    AdaptableLayer* const adaptable = Adaptable(layer);
    if (adaptable != nullptr) found.push_back(adaptable);
  }
  return found;
}

absl::Status AdaptFunctional(const FunctionalLayer& model,
                             const Dataset& data) {
  for (const std::shared_ptr<const LayerCall>& call : model.calls()) {
    AdaptableLayer* const layer = Adaptable(call->layer);
    if (layer == nullptr || !layer->NeedsData()) continue;
    const auto before = Functional(model.inputs(), call->inputs);
    RETURN_IF_ERROR(before->status());
    RETURN_IF_ERROR(AdaptLayer(*layer, before, data));
  }
  return absl::OkStatus();
}

// Serializes the states of all layers into one string.
std::string EncodeStates(const std::vector<AdaptableLayer*>& layers) {
  std::vector<std::string> parts;
  for (const AdaptableLayer* const layer : layers) {
    for (const Tensor& tensor : layer->AdaptedState()) {
      parts.push_back(EncodeTensor(tensor).SerializeAsString());
    }
  }
  return EncodeTensor(Tensor::FromSpan<std::string>(
                          {static_cast<int64_t>(parts.size())}, parts))
      .SerializeAsString();
}

absl::StatusOr<Tensor> ParseTensor(const std::string& bytes) {
  proto::Tensor encoded;
  if (!encoded.ParseFromString(bytes)) {
    return absl::DataLossError("the chief's states of layers are damaged");
  }
  return DecodeTensor(encoded);
}

absl::Status DecodeStates(const std::string& bytes,
                          const std::vector<AdaptableLayer*>& layers) {
  ASSIGN_OR_RETURN(const Tensor parts, ParseTensor(bytes));
  if (parts.dtype() != DType::kString) {
    return absl::DataLossError("the chief's states of layers are damaged");
  }
  absl::Span<const std::string> left = parts.flat<std::string>();
  for (AdaptableLayer* const layer : layers) {
    std::vector<Tensor> state;
    const size_t count = std::min(left.size(), layer->AdaptedState().size());
    for (const std::string& part : left.subspan(0, count)) {
      ASSIGN_OR_RETURN(state.emplace_back(), ParseTensor(part));
    }
    left = left.subspan(count);
    const absl::Status status = layer->SetAdaptedState(state);
    if (status.ok()) continue;
    return absl::Status(
        status.code(),
        absl::StrCat(layer->kind(), " ", layer->name(),
                     " got the state of another layer from the chief: ",
                     status.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Adapt(const LayerPtr& model, const Dataset& elements) {
  RETURN_IF_ERROR(elements.status());
  ASSIGN_OR_RETURN(const Dataset data, InOrderOfModel(*model, elements));
  const auto* functional = dynamic_cast<const FunctionalLayer*>(model.get());
  if (functional != nullptr) return AdaptFunctional(*functional, data);
  std::vector<LayerPtr> before;
  for (const LayerPtr& layer : model->layers()) {
    AdaptableLayer* const adaptable = Adaptable(layer);
    if (adaptable != nullptr && adaptable->NeedsData()) {
      RETURN_IF_ERROR(AdaptLayer(*adaptable, Sequential(before), data));
    }
    before.push_back(layer);
  }
  return absl::OkStatus();
}

bool NeedsDataBesideWeights(const LayerPtr& model) {
  for (const AdaptableLayer* const layer : AdaptableLayersOf(model)) {
    if (layer->NeedsData() && !layer->has_state_in_weights()) return true;
  }
  return false;
}

absl::Status AdaptOnChief(const LayerPtr& model, const Dataset& data,
                          const WorkerAgreement& agreement) {
  const std::vector<AdaptableLayer*> layers = AdaptableLayersOf(model);
  if (layers.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> states = "";
  if (agreement.is_chief()) {
    const absl::Status adapted = Adapt(model, data);
    states = adapted.ok() ? absl::StatusOr<std::string>(EncodeStates(layers))
                          : adapted;
  }
  ASSIGN_OR_RETURN(
      const std::string received,
      ResultFromChief(agreement, "the states of adapted layers", states));
  return agreement.is_chief() ? absl::OkStatus()
                              : DecodeStates(received, layers);
}

}  // namespace muster
