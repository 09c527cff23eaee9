#ifndef COMMON_LEARN_NN_LAYERS_EMBEDDING_H_
#define COMMON_LEARN_NN_LAYERS_EMBEDDING_H_

#include <cstdint>
#include <string>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

// Which rows of the table a step reads and updates: those that occur in its
// batch, or all, as Keras 3 does. See EmbeddingLayer.
enum class EmbeddingUpdates { kRowsOfBatch, kAllRows };

struct EmbeddingOptions {
  Initializer embeddings_initializer = RandomUniform();
  // Of the whole table, which each step then goes through.
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  // Id 0 is padding, which recurrent layers and attention pass over, and which
  // counts in no loss and no metric of an output that it reaches (Masks).
  bool mask_zero = false;
  EmbeddingUpdates updates = EmbeddingUpdates::kRowsOfBatch;
  std::string name = "";
};

// y[...] = embeddings[ids[...]]. An id outside of [0, input_dim) fails the
// step. Ids of another dtype are converted to int64.
//
// Input [...] of ids, output [..., output_dim].
// Weights: embeddings [input_dim, output_dim].
//
// By default, a step reads and updates only the rows that occur in its batch,
// so the table may be larger than one machine. Optimizers with slots then
// differ from Keras 3: rows that do not occur keep their values and slots,
// where Keras takes their gradient for 0, decays their momentum and moves them
// by it. EmbeddingUpdates::kAllRows is Keras' rule, for tables that fit into
// one machine; files of Keras do not record it. SGD without momentum and weight
// decay computes the same with both.
//
// Source: keras.layers.Embedding.
class EmbeddingLayer : public Layer {
 public:
  EmbeddingLayer(int64_t input_dim, int64_t output_dim,
                 const EmbeddingOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  // Ids may be floats, and would lose digits.
  Precision precision() const override { return Precision::kFloat32; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

  int64_t input_dim() const { return input_dim_; }
  int64_t output_dim() const { return output_dim_; }
  const Initializer& initializer() const { return initializer_; }
  // [input_dim, output_dim].
  const Weight& embeddings() const { return embeddings_; }
  // Returns false, after reporting it to the builder, if a dimension is less
  // than 1.
  bool CheckDimensions(GraphBuilder& builder) const;
  void VisitEmbedding(ConfigVisitor& visitor);

 private:
  int64_t input_dim_;
  int64_t output_dim_;
  Initializer initializer_;
  Regularizer regularizer_;
  Constraint constraint_;
  bool mask_zero_;
  EmbeddingUpdates updates_;
  Weight embeddings_;
};

// Equivalent to: keras.layers.Embedding.
LayerPtr Embedding(int64_t input_dim, int64_t output_dim,
                   const EmbeddingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_EMBEDDING_H_
