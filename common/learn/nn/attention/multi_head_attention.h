#ifndef COMMON_LEARN_NN_ATTENTION_MULTI_HEAD_ATTENTION_H_
#define COMMON_LEARN_NN_ATTENTION_MULTI_HEAD_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/regularizers.h"
#include "proto/variable.pb.h"

namespace muster {

struct MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim = std::nullopt;   // Unset: key_dim.
  std::optional<int64_t> output_dim = std::nullopt;  // Unset: the query's.
  double dropout = 0;  // Of the attention scores, while training.
  bool use_bias = true;
  // The last input is a mask.
  bool takes_attention_mask = false;
  // Position i attends to positions up to i alone.
  bool use_causal_mask = false;
  // The scores, [batch, heads, time, source time], as a second output.
  bool return_attention_scores = false;
  proto::Initializer kernel_initializer = GlorotUniform();
  proto::Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  uint64_t seed = 0;  // Of dropout; 0: from the model's.
  std::string name = "";
};

// y = sum over heads of softmax(q k^T / sqrt(key_dim)) v attention_output, with
// q, k and v the projections of query, key and value. The output is [batch,
// time, output_dim].
//
// Source: Vaswani et al., "Attention is all you need", 2017 (arXiv:1706.03762);
// keras.layers.MultiHeadAttention.
//
// Inputs: query [batch, time, features] and value [batch, source time,
// features]; then the key, like value, if it is another one; then the mask if
// the layer takes one, bool [batch, time, source time] or [batch, heads, time,
// source time]: false where a position is not to be attended to. A position
// that may attend to none gets zeros; padding (Embedding(mask_zero)) is not
// attended to. Times must be known while tracing.
//
// Weights are Keras': query, key and value have a kernel [features, heads, dim]
// and a bias [heads, dim]; attention_output has a kernel [heads, dim, features]
// and a bias [features].
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

 private:
  struct Projection {
    Weight kernel;
    Weight bias;
  };
  struct Operands {
    Value query;
    Value value;
    Value key;
    Value mask;  // Poisoned without one.
  };

  void AddDropout();
  int64_t value_dim() const { return options_.value_dim.value_or(key_dim_); }
  Projection AddProjection(const std::string& name, int64_t features,
                           int64_t dim);
  // Reports what is wrong with the inputs; false then.
  bool Parse(absl::Span<const Value> inputs, Operands* operands) const;
  // [batch, time, features] -> [batch, heads, time, dim]
  Value Project(const Projection& projection, Value x, int64_t dim) const;
  // Of the mask that came in and the causal one; poisoned without either.
  Value AttentionMask(const Operands& operands, Masks* masks) const;
  // [batch, heads, time, dim] -> [batch, time, features]
  Value ProjectOutput(Value attended) const;

  int64_t num_heads_;
  int64_t key_dim_;
  MultiHeadAttentionOptions options_;
  LayerPtr dropout_;
  Projection query_;
  Projection key_;
  Projection value_;
  Projection output_;
};

// Equivalent to: keras.layers.MultiHeadAttention.
LayerPtr MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                            const MultiHeadAttentionOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_ATTENTION_MULTI_HEAD_ATTENTION_H_
