#ifndef COMMON_LEARN_NN_EMBEDDING_H_
#define COMMON_LEARN_NN_EMBEDDING_H_

#include <cstdint>
#include <string>

#include "common/compute/variables/initializer.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

struct EmbeddingOptions {
  Initializer embeddings_initializer = RandomUniform();
  // Of the whole table, which each step then goes through.
  Regularizer embeddings_regularizer = {};
  // Id 0 is padding, which recurrent layers and attention pass over, and which
  // counts in no loss and no metric of an output that it reaches (Masks).
  bool mask_zero = false;
  std::string name = "";
};

// y[...] = embeddings[ids[...]]. An id outside of [0, input_dim) fails the
// step. Ids of another dtype are converted to int64.
//
// Input [...] of ids, output [..., output_dim].
// Weights: embeddings [input_dim, output_dim].
//
// Reads and updates only the rows that occur in a batch, so the table may be
// larger than one machine. Optimizers with slots then differ from Keras 3: rows
// that do not occur keep their values and slots, where Keras takes their
// gradient for 0, lets their momentum decay and moves them by what is left of
// it. SGD without momentum comes to the same either way.
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

 private:
  int64_t input_dim_;
  int64_t output_dim_;
  Initializer initializer_;
  Regularizer regularizer_;
  bool mask_zero_;
  Weight embeddings_;
};

// Equivalent to: keras.layers.Embedding.
LayerPtr Embedding(int64_t input_dim, int64_t output_dim,
                   const EmbeddingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_EMBEDDING_H_
