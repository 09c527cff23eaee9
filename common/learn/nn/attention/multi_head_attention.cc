#include "common/learn/nn/attention/multi_head_attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/attention/attention.h"
#include "common/learn/nn/attention/causal_mask.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"

namespace muster {
namespace {

using internal::HasKnownTime;
using internal::IsSequence;

// The score of masked positions. It is finite because -inf would result in NaN
// where all positions are masked. The least number of float16 is -65504.
double MaskedScore(Value scores) {
  return scores.ok() && scores.dtype() == DType::kFloat16 ? -3e4 : -1e9;
}

}  // namespace

MultiHeadAttentionLayer::MultiHeadAttentionLayer(
    int64_t num_heads, int64_t key_dim,
    const MultiHeadAttentionOptions& options)
    : Layer(options.name),
      num_heads_(num_heads),
      num_key_value_heads_(num_heads),
      key_dim_(key_dim),
      options_(options) {
  AddDropout();
}

void MultiHeadAttentionLayer::AddDropout() {
  if (options_.dropout > 0 && dropout_ == nullptr) {
    dropout_ = AddLayer(Dropout(options_.dropout, {.seed = options_.seed}));
  }
}

void MultiHeadAttentionLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("num_heads", num_heads_);
  num_key_value_heads_ = num_heads_;
  visitor.VisitPositive("key_dim", key_dim_);
  int64_t value_dim = options_.value_dim.value_or(key_dim_);
  visitor.Visit("value_dim", value_dim);
  options_.value_dim = value_dim;
  visitor.Visit({"output_dim", ""}, options_.output_dim);
  std::vector<int64_t> output_shape;
  if (options_.output_dim.has_value()) {
    output_shape.push_back(*options_.output_dim);
  }
  visitor.Visit({"", "output_shape"}, output_shape);
  if (!output_shape.empty()) options_.output_dim = output_shape.front();
  VisitShared(visitor);
}

void MultiHeadAttentionLayer::VisitShared(ConfigVisitor& visitor) {
  visitor.Visit("dropout", options_.dropout);
  visitor.Visit("use_bias", options_.use_bias);
  // In Keras these are arguments of the call.
  visitor.Visit({"use_causal_mask", ""}, options_.use_causal_mask);
  visitor.Visit(
      Described({"takes_attention_mask", ""}, "The last input is a mask."),
      options_.takes_attention_mask);
  visitor.Visit(Described({"return_attention_scores", ""},
                          "The scores as a second output, \"name:1\"."),
                options_.return_attention_scores);
  visitor.VisitWeight("kernel", options_.kernel_initializer,
                      options_.kernel_regularizer, options_.kernel_constraint);
  visitor.VisitWeight("bias", options_.bias_initializer,
                      options_.bias_regularizer, options_.bias_constraint);
  visitor.Visit("seed", options_.seed);
  AddDropout();
}

MultiHeadAttentionLayer::Projection MultiHeadAttentionLayer::AddProjection(
    const std::string& name, int64_t features, int64_t heads, int64_t dim) {
  // CallMany() reports values below 1. Shape would read -1 as unknown.
  heads = std::max<int64_t>(heads, 0);
  dim = std::max<int64_t>(dim, 0);
  Projection projection;
  projection.kernel =
      AddWeight(absl::StrCat(name, "/kernel"), {features, heads, dim},
                options_.kernel_initializer,
                {.regularizer = options_.kernel_regularizer,
                 .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    projection.bias = AddWeight(absl::StrCat(name, "/bias"), {heads, dim},
                                options_.bias_initializer,
                                {.regularizer = options_.bias_regularizer,
                                 .constraint = options_.bias_constraint});
  }
  return projection;
}

void MultiHeadAttentionLayer::BuildMany(absl::Span<const Shape> inputs) {
  if (options_.takes_attention_mask) inputs.remove_suffix(1);
  // CallMany() reports an invalid number of inputs.
  const auto features = [&](size_t i) {
    const int rank = i < inputs.size() ? inputs[i].rank() : 0;
    return rank == 0 ? 0 : inputs[i].dim(rank - 1);
  };
  query_ = AddProjection("query", features(0), num_heads_, key_dim_);
  key_ = AddProjection("key", features(inputs.size() > 2 ? 2 : 1),
                       num_key_value_heads_, key_dim_);
  value_ =
      AddProjection("value", features(1), num_key_value_heads_, value_dim());

  const int64_t width =
      std::max<int64_t>(options_.output_dim.value_or(features(0)), 0);
  output_.kernel = AddWeight("attention_output/kernel",
                             {std::max<int64_t>(num_heads_, 0),
                              std::max<int64_t>(value_dim(), 0), width},
                             options_.kernel_initializer,
                             {.regularizer = options_.kernel_regularizer,
                              .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    output_.bias =
        AddWeight("attention_output/bias", {width}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer,
                   .constraint = options_.bias_constraint});
  }
}

bool MultiHeadAttentionLayer::Parse(absl::Span<const Value> inputs,
                                    Operands* operands) const {
  const Value query = inputs[0];
  const auto refuse = [&](absl::string_view why) {
    query.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(kind(), "(", num_heads_, " heads of ", key_dim_,
                     "): ", why, "; the query is ", query.type().ToString())));
    return false;
  };
  if (num_heads_ < 1 || key_dim_ < 1 || value_dim() < 1 ||
      options_.output_dim.value_or(1) < 1) {
    return refuse("heads and dimensions must be at least 1");
  }
  if (num_key_value_heads_ < 1 || num_heads_ % num_key_value_heads_ != 0) {
    return refuse(absl::StrCat("the number of heads must be a multiple of ",
                               num_key_value_heads_,
                               ", that of key and value"));
  }
  if (options_.takes_attention_mask) {
    operands->mask = inputs.back();
    inputs.remove_suffix(1);
    const int rank = operands->mask.shape().rank();
    if (rank != 3 && rank != 4) {
      return refuse(
          absl::StrCat("expected a mask [batch, time, source time] or [batch, "
                       "heads, time, source time], got ",
                       operands->mask.type().ToString()));
    }
    if (operands->mask.dtype() != DType::kBool) {
      operands->mask = NotEqual(operands->mask, 0);
    }
  }
  if (inputs.size() != 2 && inputs.size() != 3) {
    return refuse(absl::StrCat("expected query, value and optionally key, got ",
                               inputs.size(), " inputs"));
  }
  if (!std::all_of(inputs.begin(), inputs.end(), IsSequence)) {
    return refuse("expected [batch, time, features] of known features");
  }
  if (options_.use_causal_mask &&
      !std::all_of(inputs.begin(), inputs.end(), HasKnownTime)) {
    return refuse("use_causal_mask needs a known time");
  }
  operands->query = query;
  operands->value = inputs[1];
  operands->key = inputs.back();
  return true;
}

Value MultiHeadAttentionLayer::Project(const Projection& projection, Value x,
                                       int64_t heads, int64_t dim) const {
  const int64_t time_count = x.shape().dim(1);
  const int64_t features = x.shape().dim(2);
  const int64_t width = heads * dim;
  const int64_t copy_count = num_heads_ / heads;
  const Value kernel = Reshape(projection.kernel, {features, width});
  if (!HasKnownTime(x)) {
    // Batch and time cannot both be found from the number of elements.
    Value y = MatMul(x, kernel);
    if (options_.use_bias) y = y + Reshape(projection.bias, {width});
    std::vector<Value> served;
    for (const Value& head :
         Split(y, std::vector<int64_t>(heads, dim), /*axis=*/-1)) {
      served.insert(served.end(), copy_count, head);
    }
    return Stack(served, 1);
  }
  Value y = MatMul(Reshape(x, {-1, features}), kernel);
  if (options_.use_bias) y = y + Reshape(projection.bias, {width});
  y = Reshape(y, {-1, time_count, heads, dim});
  if (copy_count > 1) {
    // Each head of key and value serves a group of heads of the query.
    const std::vector<Value> copies(copy_count, y);
    y = Reshape(Stack(copies, 3), {-1, time_count, num_heads_, dim});
  }
  return Transpose(y, {0, 2, 1, 3});
}

Value MultiHeadAttentionLayer::AttentionMask(const Operands& operands,
                                             Masks* masks) const {
  Value mask = operands.mask;
  if (mask.ok() && mask.shape().rank() == 3) mask = ExpandDims(mask, 1);
  // Adds a mask that is broadcast over all heads and along `axis`.
  const auto add = [&](Value source, int axis) {
    Value padding = masks->Find(source);
    if (!padding.ok() || padding.shape().rank() != 2) return;
    padding = ExpandDims(ExpandDims(padding, 1), axis);
    mask = mask.ok() ? LogicalAnd(mask, padding) : padding;
  };
  add(operands.query, -1);
  add(operands.value, -2);
  add(operands.key, -2);
  if (!options_.use_causal_mask) return mask;
  const Value causal = operands.query.builder()->Constant(internal::CausalMask(
      operands.query.shape().dim(1), operands.value.shape().dim(1)));
  return mask.ok() ? LogicalAnd(mask, causal) : causal;
}

Value MultiHeadAttentionLayer::ProjectOutput(Value attended) const {
  const int64_t time_count = attended.shape().dim(2);
  const int64_t inner = num_heads_ * value_dim();
  const Value kernel = output_.kernel;
  if (!kernel.ok()) return Value();
  const int64_t width = kernel.shape().dims().back();
  if (time_count == Shape::kUnknown) {
    const Value joined = Concat(Unstack(attended, num_heads_, 1), -1);
    const Value y = MatMul(joined, Reshape(kernel, {inner, width}));
    return options_.use_bias ? y + output_.bias : y;
  }
  const Value rows = Reshape(Transpose(attended, {0, 2, 1, 3}), {-1, inner});
  Value y = MatMul(rows, Reshape(kernel, {inner, width}));
  if (options_.use_bias) y = y + output_.bias;
  return Reshape(y, {-1, time_count, width});
}

std::vector<Value> MultiHeadAttentionLayer::CallMany(
    absl::Span<const Value> inputs, const CallContext& context) {
  Operands operands;
  if (!Parse(inputs, &operands)) return std::vector<Value>(output_count());
  const Value query = Project(query_, operands.query, num_heads_, key_dim_) *
                      (1 / std::sqrt(static_cast<double>(key_dim_)));
  const Value key = Project(key_, operands.key, num_key_value_heads_, key_dim_);
  const Value value =
      Project(value_, operands.value, num_key_value_heads_, value_dim());

  Value scores = MatMul(query, key, {.transpose_b = true});
  const Value mask = AttentionMask(operands, context.masks);
  if (mask.ok()) {
    scores = Select(mask, scores, ScalarLike(scores, MaskedScore(scores)));
  }
  // Its sums are float32, whatever the scores are.
  scores = Softmax(scores);
  // Keras computes attention without these options by another function, in
  // which a query that may attend to nothing attends to everything.
  const bool is_zero_where_masked =
      dropout_ != nullptr || options_.return_attention_scores;
  if (mask.ok() && is_zero_where_masked) {
    scores = Select(mask, scores, ScalarLike(scores, 0));
  }

  const Value kept =
      dropout_ != nullptr ? (*dropout_)(scores, context) : scores;
  std::vector<Value> outputs = {ProjectOutput(MatMul(kept, value))};
  context.masks->Set(outputs[0], context.masks->Find(operands.query));
  if (options_.return_attention_scores) outputs.push_back(scores);
  return outputs;
}

GroupQueryAttentionLayer::GroupQueryAttentionLayer(
    int64_t head_dim, int64_t num_query_heads, int64_t num_key_value_heads,
    const GroupQueryAttentionOptions& options)
    : MultiHeadAttentionLayer(
          num_query_heads, head_dim,
          {.dropout = options.dropout,
           .use_bias = options.use_bias,
           .takes_attention_mask = options.takes_attention_mask,
           .use_causal_mask = options.use_causal_mask,
           .return_attention_scores = options.return_attention_scores,
           .kernel_initializer = options.kernel_initializer,
           .bias_initializer = options.bias_initializer,
           .kernel_regularizer = options.kernel_regularizer,
           .bias_regularizer = options.bias_regularizer,
           .kernel_constraint = options.kernel_constraint,
           .bias_constraint = options.bias_constraint,
           .seed = options.seed,
           .name = options.name}) {
  num_key_value_heads_ = num_key_value_heads;
}

void GroupQueryAttentionLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("head_dim", key_dim_);
  visitor.VisitPositive("num_query_heads", num_heads_);
  visitor.VisitPositive("num_key_value_heads", num_key_value_heads_);
  VisitShared(visitor);
}

LayerPtr GroupQueryAttention(int64_t head_dim, int64_t num_query_heads,
                             int64_t num_key_value_heads,
                             const GroupQueryAttentionOptions& options) {
  return std::make_shared<GroupQueryAttentionLayer>(
      head_dim, num_query_heads, num_key_value_heads, options);
}

LayerPtr MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                            const MultiHeadAttentionOptions& options) {
  return std::make_shared<MultiHeadAttentionLayer>(num_heads, key_dim, options);
}

}  // namespace muster
