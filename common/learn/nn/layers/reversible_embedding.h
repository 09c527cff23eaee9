#ifndef COMMON_LEARN_NN_LAYERS_REVERSIBLE_EMBEDDING_H_
#define COMMON_LEARN_NN_LAYERS_REVERSIBLE_EMBEDDING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

// In which the way back is computed. kOfLayer: as all of the layer.
enum class ReverseDType { kOfLayer, kFloat32, kBfloat16, kFloat16 };

struct ReversibleEmbeddingOptions {
  // The way back uses the transposed table. Otherwise it has a weight of its
  // own.
  bool tie_weights = true;
  Initializer embeddings_initializer = RandomUniform();
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  bool mask_zero = false;  // As EmbeddingOptions.
  ReverseDType reverse_dtype = ReverseDType::kOfLayer;
  // Logits are tanh(logits / cap) * cap.
  std::optional<double> logit_soft_cap = std::nullopt;
  std::string name = "";
};

// An embedding of ids that can be called in reverse, to score all ids:
//
//   forward   y[...] = embeddings[ids[...]]
//   reverse   logits = x embeddings^T, or x reverse_embeddings
//
//   LayerPtrTo<Layer> tokens = ReversibleEmbedding(1000, 64);
//   LayerOutput x = tokens(ids);
//   LayerOutput logits = tokens.Reverse(x);
//
// A layer's Call() sets CallContext::reverse instead, and a job file has
// call { layer: "tokens" reverse: true }.
//
// Forward: input [...] of ids, output [..., output_dim]. Reverse: input [...,
// output_dim], output [..., input_dim] without a mask. Weights: embeddings
// [input_dim, output_dim], and without tie_weights reverse_embeddings
// [output_dim, input_dim]. With tie_weights every step updates all rows;
// without, as EmbeddingUpdates::kRowsOfBatch.
//
// Source: Press and Wolf, "Using the Output Embedding to Improve Language
// Models", 2016 (arXiv:1608.05859); keras.layers.ReversibleEmbedding.
class ReversibleEmbeddingLayer : public EmbeddingLayer {
 public:
  ReversibleEmbeddingLayer(int64_t input_dim, int64_t output_dim,
                           const ReversibleEmbeddingOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  // Casts embeddings itself; see EmbeddingLayer for ids.
  Precision precision() const override { return Precision::kAsTheyCome; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  Value Reverse(Value x);

  bool tie_weights_;
  ReverseDType reverse_dtype_;
  std::optional<double> logit_soft_cap_;
  Weight reverse_embeddings_;
};

// Equivalent to: keras.layers.ReversibleEmbedding.
LayerPtr ReversibleEmbedding(int64_t input_dim, int64_t output_dim,
                             const ReversibleEmbeddingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_REVERSIBLE_EMBEDDING_H_
