#ifndef COMMON_LEARN_NN_PREPROCESSING_HASHED_CROSSING_H_
#define COMMON_LEARN_NN_PREPROCESSING_HASHED_CROSSING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/preprocessing/category_output.h"

namespace muster {

struct HashedCrossingOptions {
  CategoryOutput output_mode = CategoryOutput::kInt;  // Or kOneHot.
  std::string name = "";
};

// y = the bin of what all inputs hold together: the hash of their elements
// modulo the number of bins. For features that say more together than alone,
// such as a city and a profession.
//
// Two inputs or more, strings or integers, all of the shape [batch] or [batch,
// 1]. Output: int64 of that shape, or float32 [batch, num_bins] for kOneHot. No
// weights.
//
// Source: keras.layers.HashedCrossing.
class HashedCrossingLayer : public Layer {
 public:
  HashedCrossingLayer(int64_t num_bins, const HashedCrossingOptions& options)
      : Layer(options.name),
        num_bins_(num_bins),
        output_mode_(options.output_mode) {}

  int input_count() const override { return kAnyCount; }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kAsTheyCome; }
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  int64_t num_bins_;
  CategoryOutput output_mode_;
};

// Equivalent to: keras.layers.HashedCrossing.
LayerPtr HashedCrossing(int64_t num_bins,
                        const HashedCrossingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_PREPROCESSING_HASHED_CROSSING_H_
