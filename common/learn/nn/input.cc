#include "common/learn/nn/input.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/layer.h"

namespace muster {

InputLayer::InputLayer(const Shape& shape, const InputLayerOptions& options)
    : Layer(options.name), type_{options.dtype, shape} {
  type_.shape.InsertDim(0, options.batch_size);
}

Value InputLayer::WithBatchSize(Value x) const {
  const int64_t batch_size = type_.shape.dim(0);
  if (x.shape().dim(0) == batch_size) return x;
  const std::string who = name().empty() ? "input" : "input " + name();
  const std::vector<int64_t> dims(type_.shape.dims().begin(),
                                  type_.shape.dims().end());
  if (batch_size < 1 ||
      std::count(dims.begin(), dims.end(), Shape::kUnknown) > 1) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        who,
        ": expected a batch_size of at least 1 and one unknown extent at most, "
        "got ",
        type_.ToString())));
    return Value();
  }
  // Errors name the node.
  const GraphBuilder::NameScope scope(x.builder(), "batch_size");
  // Other batches may have the number of elements of these where an extent is
  // unknown.
  if (x.dtype() != DType::kString) {
    x = Assert(x, Equal(CountAlong(x, {0}), static_cast<double>(batch_size)),
               absl::StrCat(who, " has batches of ", batch_size,
                            " examples, got another number of them; batch the "
                            "data with drop_remainder"));
  }
  return Reshape(x, dims);
}

Value InputLayer::Call(Value x, const CallContext&) {
  const int rank = type_.shape.rank();
  const bool has_single = rank > 1 && type_.shape.dim(rank - 1) == 1;
  if (has_single && x.shape().rank() == rank - 1) {
    x = ExpandDims(x, -1);
  } else if (x.shape().rank() == rank + 1 && x.shape().dim(rank) == 1) {
    x = Squeeze(x, {-1});
  }
  const bool is_text =
      x.dtype() == DType::kString || type_.dtype == DType::kString;
  if (!x.shape().IsCompatibleWith(type_.shape) ||
      (is_text && x.dtype() != type_.dtype)) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("input", name().empty() ? "" : " ", name(), ": expected ",
                     type_.ToString(), ", got ", x.type().ToString())));
    return Value();
  }
  if (x.dtype() != type_.dtype) x = Cast(x, type_.dtype);
  return type_.shape.dim(0) == Shape::kUnknown ? x : WithBatchSize(x);
}

LayerOutput Input(const Shape& shape, const InputLayerOptions& options) {
  auto call = std::make_shared<LayerCall>();
  call->layer = std::make_shared<InputLayer>(shape, options);
  return LayerOutput(std::move(call), 0);
}

}  // namespace muster
