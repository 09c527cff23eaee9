#ifndef COMMON_LEARN_NN_ATTENTION_ATTENTION_H_
#define COMMON_LEARN_NN_ATTENTION_ATTENTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"

// Attention without projections and with one head. MultiHeadAttention() has
// both.
namespace muster {

enum class ScoreMode {
  kDot,     // sum(q * k)
  kConcat,  // concat_score_weight * sum(tanh(q + k))
};

struct AttentionOptions {
  // Multiplies the scores by a trained scalar, "scale"; with kConcat, q + k.
  bool use_scale = false;
  ScoreMode score_mode = ScoreMode::kDot;
  double dropout = 0;  // Of the attention scores, while training.
  // If true, position i attends only to positions up to i.
  bool use_causal_mask = false;
  // If true, the scores [batch, time, source time] are the second output.
  bool return_attention_scores = false;
  uint64_t seed = 0;  // Of dropout; 0: derived from the model's.
  std::string name = "";
};

struct AdditiveAttentionOptions {
  // Multiplies tanh(q + k) by trained numbers, "scale" [features].
  bool use_scale = true;
  double dropout = 0;
  bool use_causal_mask = false;
  bool return_attention_scores = false;
  uint64_t seed = 0;
  std::string name = "";
};

//   y = softmax(scores(query, key)) value
//
// Inputs, in this order:
//   query  [batch, time, features]
//   value  [batch, source time, dim]
//   key    [batch, source time, features]; optional, value by default
// Output: [batch, time, dim]. Positions of the value that are masked as padding
// (Embedding(mask_zero)) are not attended to, unless all are. The output has
// the mask of the query, and is 0 where that says padding.
//
// Weights: "scale" [] with use_scale, and "concat_score_weight" [] with
// kConcat.
//
// Source: Luong et al., arXiv:1508.04025; keras.layers.Attention.
class AttentionLayer : public Layer {
 public:
  explicit AttentionLayer(const AttentionOptions& options);

  int input_count() const override { return kAnyCount; }
  int output_count() const override {
    return options_.return_attention_scores ? 2 : 1;
  }
  std::string kind() const override { return "Attention"; }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void BuildMany(absl::Span<const Shape> inputs) override;
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

  // Returns the scores [batch, time, source time].
  virtual Value Scores(Value query, Value key) const;

  void VisitShared(ConfigVisitor& visitor);
  const AttentionOptions& options() const { return options_; }

  Weight scale_;

 private:
  void AddDropout();
  // Returns false, after reporting the reason to the builder, if the inputs are
  // invalid.
  bool Check(absl::Span<const Value> inputs) const;
  // Lets scores count only where positions may be attended to.
  Value Masked(Value scores, Value value_mask) const;

  AttentionOptions options_;
  LayerPtr dropout_;
  Weight concat_score_weight_;
};

// AttentionLayer with the scores
//
//   scores = sum over features of scale * tanh(query + key)
//
// Weights: "scale" [features] with use_scale.
//
// Source: Bahdanau et al., arXiv:1409.0473; keras.layers.AdditiveAttention.
class AdditiveAttentionLayer : public AttentionLayer {
 public:
  explicit AdditiveAttentionLayer(const AdditiveAttentionOptions& options);

  std::string kind() const override { return "AdditiveAttention"; }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void BuildMany(absl::Span<const Shape> inputs) override;
  Value Scores(Value query, Value key) const override;
};

// Equivalent to: the functions of the same names in keras.layers.
LayerPtr Attention(const AttentionOptions& options = {});
LayerPtr AdditiveAttention(const AdditiveAttentionOptions& options = {});

namespace internal {

// Returns true for [batch, time, features] of known features.
bool IsSequence(const Value& x);
// Returns true if the number of time steps of a sequence is known.
bool HasKnownTime(const Value& x);

}  // namespace internal
}  // namespace muster

#endif  // COMMON_LEARN_NN_ATTENTION_ATTENTION_H_
