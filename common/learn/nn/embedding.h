#ifndef COMMON_LEARN_NN_EMBEDDING_H_
#define COMMON_LEARN_NN_EMBEDDING_H_

#include <cstdint>
#include <string>

#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "proto/variable.pb.h"

namespace muster {

struct EmbeddingOptions {
  proto::Initializer embeddings_initializer = RandomUniform();
  // A penalty on the whole table. Each step then reads and updates all rows.
  Regularizer embeddings_regularizer = {};
  // If true, id 0 is padding. The layer sets a mask, which recurrent layers,
  // attention, losses and metrics use (see Masks).
  bool mask_zero = false;
  std::string name = "";
};

//   y[...] = embeddings[ids[...]]
//
// Input: ids [...]; dtypes other than int32 and int64 are converted to int64.
// Output [..., output_dim]. Weights: embeddings [input_dim, output_dim].
//
// An id outside [0, input_dim) fails the step.
//
// Only the rows that occur in a batch are read and updated, so the table can be
// larger than the memory of one machine. Optimizers with slots therefore differ
// from Keras 3: rows that do not occur keep their values and slots. In Keras
// their gradient is 0, their momentum decays, and the remaining momentum
// updates them. SGD without momentum gives the same result in both.
//
// Source: keras.layers.Embedding.
class EmbeddingLayer : public Layer {
 public:
  EmbeddingLayer(int64_t input_dim, int64_t output_dim,
                 const EmbeddingOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  // Ids may be floats, which lose digits when cast to 16 bits.
  Precision precision() const override { return Precision::kFloat32; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t input_dim_;
  int64_t output_dim_;
  proto::Initializer initializer_;
  Regularizer regularizer_;
  bool mask_zero_;
  Weight embeddings_;
};

// Equivalent to: keras.layers.Embedding.
LayerPtr Embedding(int64_t input_dim, int64_t output_dim,
                   const EmbeddingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_EMBEDDING_H_
