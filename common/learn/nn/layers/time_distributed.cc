#include "common/learn/nn/layers/time_distributed.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

bool MixesExamples(const Layer& layer) {
  return layer.mixes_examples() ||
         std::any_of(
             layer.layers().begin(), layer.layers().end(),
             [](const LayerPtr& inner) { return MixesExamples(*inner); });
}

// Returns `shape` with its first `dropped` extents replaced by `leading`.
std::vector<int64_t> WithLeading(std::vector<int64_t> leading,
                                 const Shape& shape, int dropped) {
  leading.insert(leading.end(), shape.dims().begin() + dropped,
                 shape.dims().end());
  return leading;
}

// Returns true if all extents after the batch are known.
bool IsKnownPerExample(const Shape& shape) {
  return std::find(shape.dims().begin() + 1, shape.dims().end(),
                   Shape::kUnknown) == shape.dims().end();
}

}  // namespace

TimeDistributedLayer::TimeDistributedLayer(
    const LayerPtr& layer, const TimeDistributedOptions& options)
    : WrapperLayer(options.name), layer_(layer) {
  if (layer_ != nullptr) AddLayer(layer_);
}

void TimeDistributedLayer::VisitConfig(ConfigVisitor& visitor) {
  const bool was_given = layer_ != nullptr;
  visitor.Visit(
      Described("layer", "A layer or a model with one input and one output."),
      layer_);
  if (layer_ == nullptr) {
    return visitor.Refuse("layer", "must be a layer, got none");
  }
  if (!was_given) AddLayer(layer_);
}

std::vector<WrapperLayer::Part> TimeDistributedLayer::parts() const {
  if (layer_ == nullptr) return {};
  return {{"layer", layer_}};
}

Value TimeDistributedLayer::Call(Value x, const CallContext& outer) {
  CallContext context = outer;
  context.losses = nullptr;  // Keras adds none from inside the loop over time.
  const Shape shape = x.shape();
  if (layer_ == nullptr || layer_->output_count() != 1 || shape.rank() < 3 ||
      !IsKnownPerExample(shape)) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "TimeDistributed ", name(),
        ": expected a layer with one output, and an input [batch, time, ...] "
        "with known extents but the batch's; the input is ",
        x.type().ToString())));
    return Value();
  }
  const int64_t time_count = shape.dim(1);
  if (context.training && MixesExamples(*layer_)) {
    std::vector<Value> times = Unstack(x, time_count, 1);
    for (Value& time : times) time = (*layer_)(time, context);
    return Stack(times, 1);
  }
  const Value y = (*layer_)(Reshape(x, WithLeading({-1}, shape, 2)), context);
  if (!y.ok()) return y;
  return Reshape(y, WithLeading({-1, time_count}, y.shape(), 1));
}

LayerPtr TimeDistributed(const LayerPtr& layer,
                         const TimeDistributedOptions& options) {
  return std::make_shared<TimeDistributedLayer>(layer, options);
}

}  // namespace muster
