#include "common/learn/nn/layers/batch_normalization.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// Returns a constant with the same value for each channel.
Value Filled(GraphBuilder& builder, int64_t channels, double value) {
  return builder.Constant(Tensor::Full(DType::kFloat32, {channels}, value));
}

std::vector<int64_t> AllAxesButTheLast(const Shape& shape) {
  std::vector<int64_t> axes(shape.rank() - 1);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Sums over the unmasked rows of channels.
struct RowSums {
  Value count;    // A float32 scalar.
  Value mean;     // float32 [channels]; 0 without rows.
  Value squares;  // Of deviations from the mean.
};

RowSums SumRows(Value x, Value mask) {
  const std::vector<int64_t> axes = AllAxesButTheLast(x.shape());
  x = Cast(x, DType::kFloat32);
  if (!mask.ok()) {
    const Value count = Cast(CountAlong(x, axes), DType::kFloat32);
    const Value mean = Sum(x, axes) / Maximum(count, 1);
    return {count, mean, Sum(Square(x - mean), axes)};
  }
  const Value count = Sum(Cast(mask, DType::kFloat32));
  const Value counts = BroadcastLike(ExpandDims(mask, -1), x);
  const Value zeros = ZerosLike(x);
  const Value mean = Sum(Select(counts, x, zeros), axes) / Maximum(count, 1);
  return {count, mean, Sum(Select(counts, Square(x - mean), zeros), axes)};
}

}  // namespace

void BatchNormalizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit({"", "axis"}, options_.axis);
  visitor.Visit("momentum", options_.momentum);
  visitor.Visit("epsilon", options_.epsilon);
  visitor.Visit("center", options_.center);
  visitor.Visit("scale", options_.scale);
  visitor.VisitWeight("beta", options_.beta_initializer,
                      options_.beta_regularizer, options_.beta_constraint);
  visitor.VisitWeight("gamma", options_.gamma_initializer,
                      options_.gamma_regularizer, options_.gamma_constraint);
  visitor.Visit("moving_mean_initializer", options_.moving_mean_initializer);
  visitor.Visit("moving_variance_initializer",
                options_.moving_variance_initializer);
  visitor.Visit(
      Described("synchronized", "Over all replicas that train in sync."),
      options_.synchronized);
}

void BatchNormalizationLayer::Build(const Shape& input) {
  const Shape shape = {internal::ChannelCount(input)};
  if (options_.scale) {
    gamma_ = AddWeight("gamma", shape, options_.gamma_initializer,
                       {.regularizer = options_.gamma_regularizer,
                        .constraint = options_.gamma_constraint});
  }
  if (options_.center) {
    beta_ = AddWeight("beta", shape, options_.beta_initializer,
                      {.regularizer = options_.beta_regularizer,
                       .constraint = options_.beta_constraint});
  }
  const WeightOptions moving{.trainable = false,
                             .aggregation = proto::AGGREGATION_MEAN};
  moving_mean_ =
      AddWeight("moving_mean", shape, options_.moving_mean_initializer, moving);
  moving_variance_ = AddWeight("moving_variance", shape,
                               options_.moving_variance_initializer, moving);
}

Value BatchNormalizationLayer::Call(Value x, const CallContext& context) {
  GraphBuilder& builder = *x.builder();
  if (options_.axis != -1 && options_.axis != x.shape().rank() - 1) {
    builder.ReportError(absl::InvalidArgumentError(absl::StrCat(
        "BatchNormalization: expected the last axis as the axis of channels, "
        "got axis ",
        options_.axis, " of ", x.type().ToString())));
    return Value();
  }
  if (x.shape().rank() < 2) {
    builder.ReportError(absl::InvalidArgumentError(
        absl::StrCat("BatchNormalization ", name(),
                     ": expected an input [batch, ..., channels], got ",
                     x.type().ToString())));
    return Value();
  }
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  const int64_t channels = x.shape().dims().back();
  const Value gamma =
      options_.scale ? Value(gamma_) : Filled(builder, channels, 1);
  const Value beta =
      options_.center ? Value(beta_) : Filled(builder, channels, 0);
  const Value mask = context.masks->Find(x);
  if (mask.ok() && mask.shape().rank() != x.shape().rank() - 1) {
    builder.ReportError(absl::InvalidArgumentError(
        absl::StrCat("BatchNormalization ", name(),
                     ": expected a mask with one axis less than the input, ",
                     x.type().ToString(), ", got ", mask.type().ToString())));
    return Value();
  }
  if (context.training && trainable()) return Train(x, mask, gamma, beta);
  return BatchNormInference(x, gamma, beta, moving_mean_, moving_variance_,
                            {.epsilon = options_.epsilon});
}

Value BatchNormalizationLayer::Train(Value x, Value mask, Value gamma,
                                     Value beta) {
  if (!options_.synchronized && !mask.ok()) {
    const BatchNormOutputs outputs =
        BatchNormTraining(x, gamma, beta, {.epsilon = options_.epsilon});
    MoveStatistics({outputs.mean, outputs.variance, CountAlong(x, {0})});
    return outputs.y;
  }
  Statistics statistics;
  if (options_.synchronized) {
    statistics = OfAllReplicas(x, mask);
  } else {
    const RowSums own = SumRows(x, mask);
    statistics = {own.mean, own.squares / Maximum(own.count, 1), own.count};
  }
  MoveStatistics(statistics);
  return BatchNormInference(x, gamma, beta, statistics.mean,
                            statistics.variance, {.epsilon = options_.epsilon});
}

BatchNormalizationLayer::Statistics BatchNormalizationLayer::OfAllReplicas(
    Value x, Value mask) {
  const RowSums rows = SumRows(x, mask);
  const Value own =
      Stack({rows.mean, rows.squares, BroadcastLike(rows.count, rows.mean)}, 0);

  // Squared deviations from each replica's own mean. The difference of large
  // sums of squares would suffer from cancellation.
  const std::vector<Value> all =
      Unstack(AllGather(ExpandDims(own, 0), 0), 3, 1);
  const Value& means = all[0];
  const Value& squares = all[1];
  const Value counts = StopGradient(all[2]);
  const Value total = Sum(counts, {0});
  const Value divisor = Maximum(total, 1);
  const Value mean = Sum(means * counts, {0}) / divisor;
  const Value variance =
      Sum(squares + counts * Square(means - mean), {0}) / divisor;
  return {.mean = mean, .variance = variance, .count = Max(total)};
}

void BatchNormalizationLayer::MoveStatistics(const Statistics& batch) {
  // In its last step a replica may have no rows, and then no statistics.
  const Value has_rows = Cast(batch.count, DType::kFloat32) > 0;
  const auto move = [&](const Weight& moving, Value to) {
    to = StopGradient(Cast(to, DType::kFloat32));
    const Value now = moving;
    const Value distance =
        Select(BroadcastLike(has_rows, now), now - to, ZerosLike(now));
    moving.AssignSub(distance * (1 - options_.momentum));
  };
  move(moving_mean_, batch.mean);
  move(moving_variance_, batch.variance);
}

LayerPtr BatchNormalization(const BatchNormalizationOptions& options) {
  return std::make_shared<BatchNormalizationLayer>(options);
}

}  // namespace muster
