#ifndef COMMON_LEARN_NN_ATTENTION_MULTI_HEAD_ATTENTION_H_
#define COMMON_LEARN_NN_ATTENTION_MULTI_HEAD_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

struct MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim = std::nullopt;   // Unset: key_dim.
  std::optional<int64_t> output_dim = std::nullopt;  // Unset: query's.
  double dropout = 0;  // Of the attention scores, while training.
  bool use_bias = true;
  // If true, the last input is a mask.
  bool takes_attention_mask = false;
  // If true, position i attends only to positions up to i.
  bool use_causal_mask = false;
  // If true, the scores [batch, heads, time, source time] are the second
  // output.
  bool return_attention_scores = false;
  Initializer kernel_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  uint64_t seed = 0;  // Of dropout; 0: derived from the model's.
  std::string name = "";
};

//   y = sum over heads of softmax(q k^T / sqrt(key_dim)) v attention_output
//
// where q, k and v are the projections of query, key and value.
//
// Inputs, in this order:
//   query  [batch, time, features]
//   value  [batch, source time, features]
//   key    like value; optional, value by default
//   mask   [batch, time, source time] or [batch, heads, time, source time],
//          false or 0 where a position must not be attended to; only if
//          `takes_attention_mask`
// Output: [batch, time, output_dim]. Positions that are masked as padding
// (Embedding(mask_zero)) neither attend nor are attended to. A position that
// may attend to none attends to all of them alike or, as in Keras, to none with
// `dropout` or `return_attention_scores`. The numbers of time steps may be
// unknown while tracing, unless use_causal_mask.
//
// Weights: query, key and value each have a kernel [features, heads, dim] and a
// bias [heads, dim]; attention_output has a kernel [heads, dim, features] and a
// bias [features].
//
// Source: Vaswani et al., "Attention is all you need", 2017 (arXiv:1706.03762);
// keras.layers.MultiHeadAttention.
class MultiHeadAttentionLayer : public Layer {
 public:
  MultiHeadAttentionLayer(int64_t num_heads, int64_t key_dim,
                          const MultiHeadAttentionOptions& options);

  int input_count() const override { return kAnyCount; }
  int output_count() const override {
    return options_.return_attention_scores ? 2 : 1;
  }

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void BuildMany(absl::Span<const Shape> inputs) override;
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

  // The hyperparameters that do not count or measure heads.
  void VisitShared(ConfigVisitor& visitor);

  int64_t num_heads_;
  int64_t num_key_value_heads_;  // Divides num_heads_.
  int64_t key_dim_;

 private:
  struct Projection {
    Weight kernel;
    Weight bias;
  };
  struct Operands {
    Value query;
    Value value;
    Value key;
    Value mask;  // Poisoned if there is none.
  };

  void AddDropout();
  int64_t value_dim() const { return options_.value_dim.value_or(key_dim_); }
  Projection AddProjection(const std::string& name, int64_t features,
                           int64_t heads, int64_t dim);
  // Returns false, after reporting the reason to the builder, if the inputs are
  // invalid.
  bool Parse(absl::Span<const Value> inputs, Operands* operands) const;
  // [batch, time, features] -> [batch, num_heads_, time, dim], by a projection
  // to `heads` heads.
  Value Project(const Projection& projection, Value x, int64_t heads,
                int64_t dim) const;
  // Returns the conjunction of the attention mask, the padding masks and the
  // causal mask; a poisoned value if there are none.
  Value AttentionMask(const Operands& operands, Masks* masks) const;
  // [batch, heads, time, dim] -> [batch, time, features]
  Value ProjectOutput(Value attended) const;

  MultiHeadAttentionOptions options_;
  LayerPtr dropout_;
  Projection query_;
  Projection key_;
  Projection value_;
  Projection output_;
};

struct GroupQueryAttentionOptions {
  // As MultiHeadAttentionOptions.
  double dropout = 0;
  bool use_bias = true;
  bool takes_attention_mask = false;
  bool use_causal_mask = false;
  bool return_attention_scores = false;
  Initializer kernel_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  uint64_t seed = 0;
  std::string name = "";
};

// MultiHeadAttentionLayer whose key and value have fewer heads than the query:
// each serves num_query_heads / num_key_value_heads of them, in their order.
// All heads have `head_dim` dimensions. With one head of key and value this is
// multi-query attention.
//
// Weights: as MultiHeadAttentionLayer, with num_key_value_heads heads for key
// and value.
//
// Source: Ainslie et al., arXiv:2305.13245; keras.layers.GroupQueryAttention.
class GroupQueryAttentionLayer : public MultiHeadAttentionLayer {
 public:
  GroupQueryAttentionLayer(int64_t head_dim, int64_t num_query_heads,
                           int64_t num_key_value_heads,
                           const GroupQueryAttentionOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;
};

// Equivalent to: keras.layers.GroupQueryAttention.
LayerPtr GroupQueryAttention(int64_t head_dim, int64_t num_query_heads,
                             int64_t num_key_value_heads,
                             const GroupQueryAttentionOptions& options = {});

// Equivalent to: keras.layers.MultiHeadAttention.
LayerPtr MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                            const MultiHeadAttentionOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_ATTENTION_MULTI_HEAD_ATTENTION_H_
