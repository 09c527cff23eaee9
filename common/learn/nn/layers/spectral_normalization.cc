#include "common/learn/nn/layers/spectral_normalization.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

constexpr double kKerasEpsilon = 1e-7;  // keras.config.epsilon().

Value UnitVector(Value vector) {
  const Value square_sum = Sum(Square(vector));
  return vector * Minimum(Rsqrt(square_sum), 1 / kKerasEpsilon);
}

struct NormalizedKernel {
  Value kernel;
  Value vector_u;
};

NormalizedKernel NormalizeKernel(Value kernel, Value vector_u,
                                 int64_t iterations) {
  const Value matrix = Reshape(kernel, {-1, kernel.shape().dims().back()});
  const Value transposed = Transpose(matrix);
  Value u = vector_u;
  Value v;
  for (int64_t i = 0; i < iterations; ++i) {
    v = UnitVector(MatMul(u, transposed));
    u = UnitVector(MatMul(v, matrix));
  }
  const Value sigma = MatMul(MatMul(v, matrix), Transpose(u));
  const Value is_zero = Equal(Max(Abs(kernel)), 0);
  return {.kernel = StopGradient(
              Select(is_zero, kernel, kernel / Reshape(sigma, {}))),
          .vector_u = StopGradient(Select(is_zero, vector_u, u))};
}

}  // namespace

SpectralNormalizationLayer::SpectralNormalizationLayer(
    const LayerPtr& layer, const SpectralNormalizationOptions& options)
    : WrapperLayer(options.name),
      layer_(layer),
      power_iterations_(options.power_iterations) {
  if (layer_ != nullptr) AddLayer(layer_);
}

void SpectralNormalizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("power_iterations", power_iterations_);
  const bool was_given = layer_ != nullptr;
  visitor.Visit(Described("layer", "A layer with a kernel or embeddings."),
                layer_);
  if (layer_ == nullptr) {
    return visitor.Refuse("layer", "must be a layer, got none");
  }
  if (!was_given) AddLayer(layer_);
}

std::vector<WrapperLayer::Part> SpectralNormalizationLayer::parts() const {
  if (layer_ == nullptr) return {};
  return {{"layer", layer_}};
}

std::vector<Weight> SpectralNormalizationLayer::own_weights() const {
  if (!has_kernel_) return {};
  return {kernel_, vector_u_};
}

void SpectralNormalizationLayer::BuildMany(absl::Span<const Shape> inputs) {
  if (layer_ == nullptr) return;
  layer_->EnsureBuilt(inputs);
  const std::string& prefix =
      layer_->path().empty() ? layer_->name() : layer_->path();
  const std::string folder = prefix.empty() ? "" : absl::StrCat(prefix, "/");
  for (const Weight& weight : layer_->weights()) {
    if (weight.name() != folder + "kernel" &&
        weight.name() != folder + "embeddings") {
      continue;
    }
    has_kernel_ = true;
    kernel_ = weight;
    kernel_.set_aggregation(proto::AGGREGATION_MEAN);
    const TensorType& type = kernel_.handle().type;
    vector_u_ = AddWeight("vector_u", {1, type.shape.dims().back()},
                          TruncatedNormal({.stddev = 0.02}),
                          {.trainable = false,
                           .dtype = type.dtype,
                           .aggregation = proto::AGGREGATION_MEAN});
    return;
  }
}

Value SpectralNormalizationLayer::Call(Value x, const CallContext& context) {
  if (!has_kernel_ || power_iterations_ < 1 || layer_->input_count() != 1 ||
      layer_->output_count() != 1) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "SpectralNormalization ", name(),
        ": expected power_iterations of at least 1, got ", power_iterations_,
        ", and a layer of one input and one output with a weight \"kernel\" or "
        "\"embeddings\", got ",
        layer_ == nullptr ? "none" : layer_->kind())));
    return Value();
  }
  const Value y =
      context.training ? CallNormalized(x, context) : (*layer_)(x, context);
  const bool is_cast = y.ok() && IsFloating(x.dtype()) && IsFloating(y.dtype());
  return is_cast ? Cast(y, x.dtype()) : y;
}

Value SpectralNormalizationLayer::CallNormalized(Value x,
                                                 const CallContext& context) {
  const Value kernel = ReadVariable(*x.builder(), kernel_.handle());
  const NormalizedKernel normalization =
      NormalizeKernel(kernel, vector_u_, power_iterations_);
  vector_u_.Assign(normalization.vector_u);
  kernel_.Assign(normalization.kernel);
  // Its value is the normalized kernel, and its gradient goes to the variable.
  // Reading the variable again would make replicas wait for each other here.
  kernel_.Substitute(kernel + (normalization.kernel - StopGradient(kernel)));
  const Value y = (*layer_)(x, context);
  kernel_.Substitute(Value());
  return y;
}

LayerPtr SpectralNormalization(const LayerPtr& layer,
                               const SpectralNormalizationOptions& options) {
  return std::make_shared<SpectralNormalizationLayer>(layer, options);
}

}  // namespace muster
