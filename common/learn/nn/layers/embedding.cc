#include "common/learn/nn/layers/embedding.h"

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
#include "common/learn/nn/masks.h"

namespace muster {
namespace {

// Looks rows up along axis 1, because the gradient of a lookup along axis 0 has
// the rows that were looked up, and no others.
Value LookUpDensely(Value table, Value ids) {
  return Squeeze(Gather(ExpandDims(table, 0), ids, 1), {0});
}

}  // namespace

EmbeddingLayer::EmbeddingLayer(int64_t input_dim, int64_t output_dim,
                               const EmbeddingOptions& options)
    : Layer(options.name),
      input_dim_(input_dim),
      output_dim_(output_dim),
      initializer_(options.embeddings_initializer),
      regularizer_(options.embeddings_regularizer),
      constraint_(options.embeddings_constraint),
      mask_zero_(options.mask_zero),
      updates_(options.updates) {}

void EmbeddingLayer::VisitEmbedding(ConfigVisitor& visitor) {
  visitor.VisitPositive("input_dim", input_dim_);
  visitor.VisitPositive("output_dim", output_dim_);
  visitor.VisitWeight("embeddings", initializer_, regularizer_, constraint_);
  visitor.Visit(Described("mask_zero",
                          "Id 0 is padding, which recurrent layers and "
                          "attention pass over, and which counts in no loss "
                          "and no metric of an output that it reaches."),
                mask_zero_);
}

void EmbeddingLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitEmbedding(visitor);
  static constexpr absl::string_view kUpdates[] = {"rows_of_batch", "all_rows"};
  visitor.Visit(
      Described(ConfigName("updates", ""),
                "Which rows a step updates. ROWS_OF_BATCH: those that occur in "
                "its batch; the others keep values and slots, where Keras "
                "decays their momentum and moves them by it. ALL_ROWS: as in "
                "Keras; every step reads the whole table."),
      updates_, kUpdates);
}

void EmbeddingLayer::Build(const Shape&) {
  // Call() reports values below 1. Shape would read -1 as unknown.
  embeddings_ = AddWeight(
      "embeddings",
      {std::max<int64_t>(input_dim_, 0), std::max<int64_t>(output_dim_, 0)},
      initializer_, {.regularizer = regularizer_, .constraint = constraint_});
}

bool EmbeddingLayer::CheckDimensions(GraphBuilder& builder) const {
  if (input_dim_ >= 1 && output_dim_ >= 1) return true;
  builder.ReportError(absl::InvalidArgumentError(
      absl::StrCat(kind(), "(", input_dim_, ", ", output_dim_,
                   "): both dimensions must be at least 1")));
  return false;
}

Value EmbeddingLayer::Call(Value x, const CallContext& context) {
  if (!CheckDimensions(*x.builder())) return Value();
  const bool is_index =
      x.dtype() == DType::kInt32 || x.dtype() == DType::kInt64;
  // Keras accepts ids of any dtype. Ids read from files are often floats.
  if (!is_index) x = Cast(x, DType::kInt64);
  const Value rows = updates_ == EmbeddingUpdates::kAllRows
                         ? LookUpDensely(embeddings_, x)
                         : embeddings_.Rows(x);
  if (mask_zero_) context.masks->Set(rows, NotEqual(x, 0));
  return rows;
}

LayerPtr Embedding(int64_t input_dim, int64_t output_dim,
                   const EmbeddingOptions& options) {
  return std::make_shared<EmbeddingLayer>(input_dim, output_dim, options);
}

}  // namespace muster
