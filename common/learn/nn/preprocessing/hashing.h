#ifndef COMMON_LEARN_NN_PREPROCESSING_HASHING_H_
#define COMMON_LEARN_NN_PREPROCESSING_HASHING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/preprocessing/category_output.h"

namespace muster {

struct HashingOptions {
  // A string that has bin 0 for itself. Of strings only.
  std::optional<std::string> mask_value = std::nullopt;
  // The key of SipHash: one number, or two. None: the hash is FarmHash's, for
  // which everyone can find strings that collide.
  std::vector<int64_t> salt = {};
  // Not kTfIdf.
  CategoryOutput output_mode = CategoryOutput::kInt;
  std::string name = "";
};

// y = the bin of each string or integer: its hash modulo the number of bins.
//
// Input: any shape, with the batch as the first axis. Floats are converted to
// int64, as in Keras. Output by output_mode, as EncodeCategories(): int64 of
// the input's shape, or float32 vectors. No weights.
//
// Source: keras.layers.Hashing.
class HashingLayer : public Layer {
 public:
  HashingLayer(int64_t num_bins, const HashingOptions& options)
      : Layer(options.name), num_bins_(num_bins), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kAsTheyCome; }
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t num_bins_;
  HashingOptions options_;
};

// Equivalent to: keras.layers.Hashing.
LayerPtr Hashing(int64_t num_bins, const HashingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_PREPROCESSING_HASHING_H_
