#include "common/train/adapt.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/dataset/dataset.h"
#include "common/graph/graph.h"
#include "common/graph/graph_builder.h"
#include "common/kernels/cpu/cpu_kernels.h"
#include "common/nn/layer.h"
#include "common/nn/normalization.h"
#include "common/ops/builtin_ops.h"
#include "common/ops/control.h"
#include "common/runtime/executable.h"
#include "common/tensor/tensor.h"

namespace muster {
namespace {

// What `layers` make of `input`.
absl::StatusOr<Graph> TraceLayers(absl::Span<const LayerPtr> layers,
                                  const TensorType& input) {
  GraphBuilder builder(&BuiltinOps(), "adapt");
  Value x = Identity(builder.Parameter("x", input));
  for (const LayerPtr& layer : layers) x = (*layer)(x, kInference);
  builder.AddResult(x);
  return std::move(builder).Build();
}

absl::Status Adapt(NormalizationLayer& layer, absl::Span<const LayerPtr> before,
                   const Dataset& data) {
  ASSIGN_OR_RETURN(Graph graph,
                   TraceLayers(before, data.element_types().front()));
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
    RETURN_IF_ERROR(executable->Run(absl::MakeConstSpan(element).subspan(0, 1),
                                    {}, &results));
    RETURN_IF_ERROR(layer.Observe(results[0]));
  }
  if (!saw_data) {
    return absl::InvalidArgumentError("there is no data to adapt to");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AdaptNormalization(const LayerPtr& model, const Dataset& data) {
  RETURN_IF_ERROR(data.status());
  const absl::Span<const LayerPtr> layers = model->layers();
  for (size_t i = 0; i < layers.size(); ++i) {
    auto* const layer = dynamic_cast<NormalizationLayer*>(layers[i].get());
    if (layer == nullptr || !layer->NeedsData()) continue;
    if (data.Cardinality() == Dataset::kInfinite) {
      return absl::InvalidArgumentError(
          "Normalization cannot adapt to data that never ends; adapt it to "
          "part of the data, with Take()");
    }
    for (size_t j = 0; j < i; ++j) {
      if (layers[j]->weights().empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "Normalization ", layer->name(), " stands behind layer ",
          layers[j]->name(),
          ", which has weights; it can only adapt to data that none have "
          "changed"));
    }
    RETURN_IF_ERROR(Adapt(*layer, layers.subspan(0, i), data));
  }
  return absl::OkStatus();
}

}  // namespace muster
