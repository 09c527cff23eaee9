#include "common/learn/nn/sample_weights.h"

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/shape_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster::internal {
namespace {

bool EndsInOne(const Value& value) {
  return value.shape().rank() > 0 && value.shape().dims().back() == 1;
}

}  // namespace

Value AtLeastFloat32(Value x) {
  const bool is_short =
      x.ok() && IsFloating(x.dtype()) && SizeOf(x.dtype()) < sizeof(float);
  return is_short ? Cast(x, DType::kFloat32) : x;
}

Value AlignLabels(Value labels, Value predictions) {
  if (!labels.ok() || !predictions.ok()) return labels;
  if (labels.dtype() != predictions.dtype()) {
    labels = Cast(labels, predictions.dtype());
  }
  const int extra = labels.shape().rank() - predictions.shape().rank();
  if (extra == 1 && EndsInOne(labels)) return Squeeze(labels, {-1});
  if (extra == -1 && EndsInOne(predictions)) return ExpandDims(labels, -1);
  return labels;
}

bool IsBinary(Value predictions) {
  const Shape& shape = predictions.shape();
  return shape.rank() > 0 && shape.dims().back() == 1;
}

bool IsSparse(Value labels, Value predictions) {
  const Shape& shape = labels.shape();
  return shape.rank() < predictions.shape().rank() ||
         (shape.rank() > 0 && shape.dims().back() == 1 &&
          !IsBinary(predictions));
}

Value AlignSparseLabels(Value labels, Value predictions) {
  if (!labels.ok() || !predictions.ok()) return labels;
  if (labels.dtype() != DType::kInt32 && labels.dtype() != DType::kInt64) {
    labels = Cast(labels, DType::kInt64);
  }
  const bool same_rank = labels.shape().rank() == predictions.shape().rank();
  return same_rank && EndsInOne(labels) ? Squeeze(labels, {-1}) : labels;
}

Value AlignWeights(Value weights, Value values) {
  if (!weights.ok() || !values.ok()) return weights;
  if (weights.dtype() != values.dtype()) {
    weights = Cast(weights, values.dtype());
  }
  while (weights.shape().rank() > values.shape().rank() && EndsInOne(weights)) {
    weights = Squeeze(weights, {-1});
  }
  while (weights.ok() && weights.shape().rank() < values.shape().rank()) {
    weights = ExpandDims(weights, -1);
  }
  return weights;
}

Value MaskWeights(Value weights, Value mask) {
  if (!HasWeights(weights)) return Cast(mask, DType::kFloat32);
  if (!weights.ok() || !mask.ok()) return weights;
  weights =
      AlignWeights(Cast(weights, DType::kFloat32), Cast(mask, DType::kFloat32));
  return weights * AlignWeights(mask, weights);
}

}  // namespace muster::internal
