#ifndef COMMON_LEARN_NN_PREPROCESSING_TEXT_VECTORIZATION_H_
#define COMMON_LEARN_NN_PREPROCESSING_TEXT_VECTORIZATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/base/text_tokens.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/adaptable_layer.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/preprocessing/category_output.h"
#include "common/learn/nn/preprocessing/vocabulary.h"

namespace muster {

// The defaults are Keras'.
struct TextVectorizationOptions {
  // As in LookupOptions.
  std::optional<int64_t> max_tokens = std::nullopt;
  std::vector<std::string> vocabulary = {};
  std::string vocabulary_file = "";
  std::vector<double> idf_weights = {};
  // Not kOneHot.
  CategoryOutput output_mode = CategoryOutput::kInt;
  bool pad_to_max_tokens = false;
  TokenOptions tokens = {};
  // The extent of the output kInt. Texts with more tokens are cut off; those
  // with fewer are padded with 0.
  std::optional<int64_t> output_sequence_length = std::nullopt;
  std::string name = "";
};

// y = the tokens of each text as indices in a vocabulary, or as a vector made
// of the indices. Index 0 is padding, 1 are tokens that the vocabulary does not
// have; in vectors, the latter have index 0.
//
// Input: string [batch] or [batch, 1]; without `split`, [batch, n] of tokens.
// Output: kInt, int64 [batch, output_sequence_length]; the others, float32
// [batch, depth]. No weights.
//
// Differs from Keras: a step's shapes follow from those of its inputs, so kInt
// needs output_sequence_length where Keras pads to the longest text of a batch.
//
// Source: keras.layers.TextVectorization.
class TextVectorizationLayer : public AdaptableLayer {
 public:
  explicit TextVectorizationLayer(const TextVectorizationOptions& options = {});

  const Vocabulary<std::string>& vocabulary() const { return vocabulary_; }

  void VisitConfig(ConfigVisitor& visitor) override;
  bool NeedsData() const override { return vocabulary_.IsEmpty(); }
  absl::Status Observe(const Tensor& data) override;
  absl::Status FinishObserving() override {
    return vocabulary_.FinishObserving();
  }
  std::vector<Tensor> AdaptedState() const override {
    return vocabulary_.State();
  }
  absl::Status SetAdaptedState(absl::Span<const Tensor> state) override {
    return vocabulary_.SetState(state);
  }

 protected:
  Precision precision() const override { return Precision::kAsTheyCome; }
  Value Call(Value x, const CallContext& context) override;

 private:
  // The rows of texts in data of this type: [batch, n]. Names what is wrong.
  absl::StatusOr<Shape> RowsOf(const TensorType& type) const;

  TokenOptions tokens_;
  std::optional<int64_t> output_sequence_length_;
  Vocabulary<std::string> vocabulary_;
};

// Equivalent to: keras.layers.TextVectorization.
LayerPtr TextVectorization(const TextVectorizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_PREPROCESSING_TEXT_VECTORIZATION_H_
