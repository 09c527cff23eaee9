#ifndef COMMON_LEARN_NN_PREPROCESSING_CATEGORY_ENCODING_H_
#define COMMON_LEARN_NN_PREPROCESSING_CATEGORY_ENCODING_H_

#include <cstdint>
#include <string>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/preprocessing/category_output.h"

namespace muster {

struct CategoryEncodingOptions {
  // kOneHot, kMultiHot or kCount.
  CategoryOutput output_mode = CategoryOutput::kMultiHot;
  std::string name = "";
};

// y = vectors of `num_tokens` elements for indices of categories, as
// EncodeCategories(). Other dtypes than integers are converted to int64. No
// weights.
//
// Source: keras.layers.CategoryEncoding.
class CategoryEncodingLayer : public Layer {
 public:
  CategoryEncodingLayer(int64_t num_tokens,
                        const CategoryEncodingOptions& options)
      : Layer(options.name),
        num_tokens_(num_tokens),
        output_mode_(options.output_mode) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t num_tokens_;
  CategoryOutput output_mode_;
};

// Equivalent to: keras.layers.CategoryEncoding.
LayerPtr CategoryEncoding(int64_t num_tokens,
                          const CategoryEncodingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_PREPROCESSING_CATEGORY_ENCODING_H_
