#include "common/learn/nn/layers/reversible_embedding.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/masks.h"

namespace muster {
namespace {

DType DTypeOf(ReverseDType dtype, DType of_layer) {
  switch (dtype) {
    case ReverseDType::kOfLayer:
      return of_layer;
    case ReverseDType::kFloat32:
      return DType::kFloat32;
    case ReverseDType::kBfloat16:
      return DType::kBfloat16;
    case ReverseDType::kFloat16:
      return DType::kFloat16;
  }
  return of_layer;
}

}  // namespace

ReversibleEmbeddingLayer::ReversibleEmbeddingLayer(
    int64_t input_dim, int64_t output_dim,
    const ReversibleEmbeddingOptions& options)
    : EmbeddingLayer(input_dim, output_dim,
                     {.embeddings_initializer = options.embeddings_initializer,
                      .embeddings_regularizer = options.embeddings_regularizer,
                      .embeddings_constraint = options.embeddings_constraint,
                      .mask_zero = options.mask_zero,
                      .name = options.name}),
      tie_weights_(options.tie_weights),
      reverse_dtype_(options.reverse_dtype),
      logit_soft_cap_(options.logit_soft_cap) {}

void ReversibleEmbeddingLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitEmbedding(visitor);
  visitor.Visit("tie_weights", tie_weights_);
  static constexpr absl::string_view kDTypes[] = {"none", "float32", "bfloat16",
                                                  "float16"};
  visitor.Visit(Described("reverse_dtype",
                          "Of the way back, call { layer: \"name\" reverse: "
                          "true }. NONE: that of the layer."),
                reverse_dtype_, kDTypes);
  visitor.Visit("logit_soft_cap", logit_soft_cap_);
  if (logit_soft_cap_.has_value() && *logit_soft_cap_ == 0) {
    visitor.Refuse("logit_soft_cap", "must not be 0");
  }
}

void ReversibleEmbeddingLayer::Build(const Shape& input) {
  EmbeddingLayer::Build(input);
  if (tie_weights_) return;
  reverse_embeddings_ = AddWeight(
      "reverse_embeddings",
      {std::max<int64_t>(output_dim(), 0), std::max<int64_t>(input_dim(), 0)},
      initializer());
}

Value ReversibleEmbeddingLayer::Call(Value x, const CallContext& context) {
  if (context.reverse) return Reverse(x);
  const Value rows = EmbeddingLayer::Call(x, context);
  if (!rows.ok()) return rows;
  const Value cast = Cast(rows, dtype_policy().compute);
  context.masks->Set(cast, context.masks->Find(rows));
  return cast;
}

Value ReversibleEmbeddingLayer::Reverse(Value x) {
  if (!CheckDimensions(*x.builder())) return Value();
  const Shape& shape = x.shape();
  if (shape.rank() < 2 || shape.dims().back() != output_dim() ||
      !IsFloating(x.dtype())) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("ReversibleEmbedding ", name(),
                     ": called in reverse, expected floats [..., ",
                     output_dim(), "], got ", x.type().ToString())));
    return Value();
  }
  const DType dtype = DTypeOf(reverse_dtype_, dtype_policy().compute);
  const Value kernel = tie_weights_ ? Transpose(Value(embeddings()))
                                    : Value(reverse_embeddings_);
  const Value logits = MatMul(Cast(x, dtype), Cast(kernel, dtype));
  if (!logit_soft_cap_.has_value()) return logits;
  return Tanh(logits / *logit_soft_cap_) * *logit_soft_cap_;
}

LayerPtr ReversibleEmbedding(int64_t input_dim, int64_t output_dim,
                             const ReversibleEmbeddingOptions& options) {
  return std::make_shared<ReversibleEmbeddingLayer>(input_dim, output_dim,
                                                    options);
}

}  // namespace muster
