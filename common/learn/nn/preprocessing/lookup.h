#ifndef COMMON_LEARN_NN_PREPROCESSING_LOOKUP_H_
#define COMMON_LEARN_NN_PREPROCESSING_LOOKUP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/adaptable_layer.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/preprocessing/vocabulary.h"

namespace muster {

using StringLookupOptions = LookupOptions<std::string>;
using IntegerLookupOptions = LookupOptions<int64_t>;

// y = the index of each token in a vocabulary, or a vector made of the indices.
// The mask token has index 0, then come num_oov_indices indices for tokens that
// the vocabulary does not have, then the vocabulary. With `invert`, y is the
// token of each index.
//
// The vocabulary is given as an option, or it consists of the tokens that
// Observe() has seen, the most frequent first.
//
// Input: tokens of any shape, with the batch as the first axis; integers of any
// dtype for IntegerLookup. Output by output_mode, as EncodeCategories(): int64
// of the input's shape, or float32 vectors. No weights.
//
// Source: keras.layers.StringLookup and IntegerLookup.
template <typename T>
class LookupLayer : public AdaptableLayer {
 public:
  explicit LookupLayer(LookupOptions<T> options)
      : AdaptableLayer(options.name), vocabulary_(std::move(options)) {}

  std::string kind() const override;
  const Vocabulary<T>& vocabulary() const { return vocabulary_; }

  void VisitConfig(ConfigVisitor& visitor) override {
    vocabulary_.VisitAll(visitor);
  }
  bool NeedsData() const override { return vocabulary_.IsEmpty(); }
  // Each row of the batch is a document for tf_idf.
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
  Vocabulary<T> vocabulary_;
};

using StringLookupLayer = LookupLayer<std::string>;
using IntegerLookupLayer = LookupLayer<int64_t>;

// Equivalent to: keras.layers.StringLookup.
LayerPtr StringLookup(const StringLookupOptions& options = {});
// Equivalent to: keras.layers.IntegerLookup.
LayerPtr IntegerLookup(const IntegerLookupOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_PREPROCESSING_LOOKUP_H_
