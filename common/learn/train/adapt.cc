#include "common/learn/train/adapt.h"

#include <algorithm>
#include <cstddef>
#include <memory>
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
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/normalization.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"

namespace muster {
namespace {

// What `before` makes of the first components of an element.
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

absl::Status Adapt(NormalizationLayer& layer, const LayerPtr& before,
                   const Dataset& data) {
  if (data.Cardinality() == Dataset::kInfinite) {
    return absl::InvalidArgumentError(
        "Normalization cannot adapt to data that never ends; adapt it to "
        "part of the data, with Take()");
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
        "Normalization ", layer.name(), " stands behind ",
        before->weights().front().name(),
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
    return absl::InvalidArgumentError("there is no data to adapt to");
  }
  return absl::OkStatus();
}

// The layer, where it is one that has to see data.
NormalizationLayer* ToAdapt(const LayerPtr& layer) {
  auto* const normalization = dynamic_cast<NormalizationLayer*>(layer.get());
  return normalization != nullptr && normalization->NeedsData() ? normalization
                                                                : nullptr;
}

absl::Status AdaptFunctional(const FunctionalLayer& model,
                             const Dataset& data) {
  for (const std::shared_ptr<const LayerCall>& call : model.calls()) {
    NormalizationLayer* const layer = ToAdapt(call->layer);
    if (layer == nullptr) continue;
    const auto before = Functional(model.inputs(), call->inputs);
    RETURN_IF_ERROR(before->status());
    RETURN_IF_ERROR(Adapt(*layer, before, data));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AdaptNormalization(const LayerPtr& model, const Dataset& data) {
  RETURN_IF_ERROR(data.status());
  const auto* functional = dynamic_cast<const FunctionalLayer*>(model.get());
  if (functional != nullptr) return AdaptFunctional(*functional, data);
  std::vector<LayerPtr> before;
  for (const LayerPtr& layer : model->layers()) {
    if (NormalizationLayer* const normalization = ToAdapt(layer)) {
      RETURN_IF_ERROR(Adapt(*normalization, Sequential(before), data));
    }
    before.push_back(layer);
  }
  return absl::OkStatus();
}

}  // namespace muster
