#include "common/learn/nn/attention/attention.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/attention/causal_mask.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"

namespace muster {
namespace internal {

bool IsSequence(const Value& x) {
  return x.shape().rank() == 3 && x.shape().dim(2) != Shape::kUnknown;
}

bool HasKnownTime(const Value& x) {
  return x.shape().dim(1) != Shape::kUnknown;
}

}  // namespace internal

namespace {

using internal::HasKnownTime;
using internal::IsSequence;

// What Keras subtracts from scores of positions that are not attended to. The
// greatest number of float16 is 65504.
double MaskedScoreReduction(DType dtype) {
  return dtype == DType::kFloat16 ? 65504 : 1e9;
}

// False if the number of time steps is known to differ.
bool HaveOneTime(const Value& a, const Value& b) {
  return a.shape().dim(1) == b.shape().dim(1) || !HasKnownTime(a) ||
         !HasKnownTime(b);
}

// [batch, time, source time, features]
Value SumOfPairs(Value query, Value key) {
  return ExpandDims(query, 2) + ExpandDims(key, 1);
}

}  // namespace

AttentionLayer::AttentionLayer(const AttentionOptions& options)
    : Layer(options.name), options_(options) {
  AddDropout();
}

void AttentionLayer::AddDropout() {
  if (options_.dropout > 0 && dropout_ == nullptr) {
    dropout_ = AddLayer(Dropout(options_.dropout, {.seed = options_.seed}));
  }
}

void AttentionLayer::VisitShared(ConfigVisitor& visitor) {
  visitor.Visit("use_scale", options_.use_scale);
  visitor.Visit("dropout", options_.dropout);
  visitor.Visit("seed", options_.seed);
  // In Keras these are arguments of the call.
  visitor.Visit({"use_causal_mask", ""}, options_.use_causal_mask);
  visitor.Visit(Described({"return_attention_scores", ""},
                          "The scores as a second output, \"name:1\"."),
                options_.return_attention_scores);
  AddDropout();
}

void AttentionLayer::VisitConfig(ConfigVisitor& visitor) {
  static constexpr absl::string_view kModes[] = {"dot", "concat"};
  visitor.Visit("score_mode", options_.score_mode, kModes);
  VisitShared(visitor);
}

void AttentionLayer::BuildMany(absl::Span<const Shape>) {
  if (options_.use_scale) scale_ = AddWeight("scale", {}, Ones());
  if (options_.score_mode == ScoreMode::kConcat) {
    concat_score_weight_ = AddWeight("concat_score_weight", {}, Ones());
  }
}

bool AttentionLayer::Check(absl::Span<const Value> inputs) const {
  const bool has_count = inputs.size() == 2 || inputs.size() == 3;
  if (has_count && std::all_of(inputs.begin(), inputs.end(), IsSequence)) {
    const bool has_times =
        !options_.use_causal_mask ||
        std::all_of(inputs.begin(), inputs.end(), HasKnownTime);
    if (has_times && HaveOneTime(inputs[1], inputs.back()) &&
        inputs[0].shape().dim(2) == inputs.back().shape().dim(2)) {
      return true;
    }
  }
  const auto append_type = [](std::string* out, const Value& input) {
    absl::StrAppend(out, input.type().ToString());
  };
  inputs[0].builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
      kind(), " ", name(),
      ": expected query [batch, time, features], value [batch, source time, "
      "dim] and optionally key [batch, source time, features] of known "
      "features, and with use_causal_mask of known times; the inputs are ",
      absl::StrJoin(inputs, " and ", append_type))));
  return false;
}

Value AttentionLayer::Scores(Value query, Value key) const {
  if (options_.score_mode == ScoreMode::kDot) {
    const Value scores = MatMul(query, key, {.transpose_b = true});
    return options_.use_scale ? scores * scale_ : scores;
  }
  Value pairs = SumOfPairs(query, key);
  if (options_.use_scale) pairs = pairs * scale_;
  return Sum(Tanh(pairs), {-1}) * concat_score_weight_;
}

Value AttentionLayer::Masked(Value scores, Value value_mask) const {
  Value mask;
  if (value_mask.ok()) mask = ExpandDims(value_mask, 1);
  if (options_.use_causal_mask) {
    const Value causal = scores.builder()->Constant(
        internal::CausalMask(scores.shape().dim(1), scores.shape().dim(2)));
    mask = mask.ok() ? LogicalAnd(mask, causal) : causal;
  }
  if (!mask.ok()) return scores;
  return Select(mask, scores, scores - MaskedScoreReduction(scores.dtype()));
}

std::vector<Value> AttentionLayer::CallMany(absl::Span<const Value> inputs,
                                            const CallContext& context) {
  if (!Check(inputs)) return std::vector<Value>(output_count());
  const Value value = inputs[1];
  const auto mask_of = [&](Value x) {
    return context.masks == nullptr ? Value() : context.masks->Find(x);
  };
  Value scores = Scores(inputs[0], inputs.back());
  const DType dtype = scores.ok() ? scores.dtype() : DType::kFloat32;
  // In float32, because a sum of many small 16-bit numbers loses digits.
  if (dtype != DType::kFloat64) scores = Cast(scores, DType::kFloat32);
  scores = Cast(Softmax(Masked(scores, mask_of(value))), dtype);
  const Value kept =
      dropout_ != nullptr ? (*dropout_)(scores, context) : scores;
  Value y = MatMul(kept, value);
  if (const Value query_mask = mask_of(inputs[0]); query_mask.ok()) {
    y = Select(ExpandDims(query_mask, -1), y, ZerosLike(y));
    context.masks->Set(y, query_mask);
  }
  std::vector<Value> outputs = {y};
  if (options_.return_attention_scores) outputs.push_back(scores);
  return outputs;
}

AdditiveAttentionLayer::AdditiveAttentionLayer(
    const AdditiveAttentionOptions& options)
    : AttentionLayer(
          {.use_scale = options.use_scale,
           .dropout = options.dropout,
           .use_causal_mask = options.use_causal_mask,
           .return_attention_scores = options.return_attention_scores,
           .seed = options.seed,
           .name = options.name}) {}

void AdditiveAttentionLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitShared(visitor);
}

void AdditiveAttentionLayer::BuildMany(absl::Span<const Shape> inputs) {
  if (!options().use_scale) return;
  const Shape& query = inputs[0];
  // CallMany() reports another rank.
  const int64_t features = query.rank() == 0 ? 0 : query.dim(query.rank() - 1);
  scale_ = AddWeight("scale", {features}, GlorotUniform());
}

Value AdditiveAttentionLayer::Scores(Value query, Value key) const {
  Value pairs = Tanh(SumOfPairs(query, key));
  if (options().use_scale) pairs = pairs * scale_;
  return Sum(pairs, {-1});
}

LayerPtr Attention(const AttentionOptions& options) {
  return std::make_shared<AttentionLayer>(options);
}

LayerPtr AdditiveAttention(const AdditiveAttentionOptions& options) {
  return std::make_shared<AdditiveAttentionLayer>(options);
}

}  // namespace muster
