#ifndef COMMON_LEARN_NN_LAYERS_ADAPTIVE_POOLING_H_
#define COMMON_LEARN_NN_LAYERS_ADAPTIVE_POOLING_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

namespace muster {

struct AdaptivePoolingOptions {
  std::string name = "";
};

// Pooling to a given size: the maximum or the mean of windows that follow from
// the extents of the input. Along an axis of n positions and m outputs, output
// i is that of positions
//
//   floor(i * n / m) to ceil((i + 1) * n / m) - 1
//
// The axes are pooled one after another, the first one first.
//
// Input [batch, extents..., channels], output [batch, output_size...,
// channels], with one, two or three extents, which must be known. No weights.
//
// Source: keras.layers.AdaptiveAveragePooling1D, AdaptiveMaxPooling1D, and
// those of two and three dimensions.
class AdaptivePoolingLayer : public Layer {
 public:
  // Output sizes of at least 1 for `rank` axes; empty: given by VisitConfig().
  AdaptivePoolingLayer(bool takes_mean, int rank,
                       std::vector<int64_t> output_size,
                       const AdaptivePoolingOptions& options)
      : Layer(options.name),
        takes_mean_(takes_mean),
        rank_(rank),
        output_size_(std::move(output_size)) {}

  std::string kind() const override {
    return absl::StrCat("Adaptive", takes_mean_ ? "Average" : "Max", "Pooling",
                        rank_, "D");
  }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  const bool takes_mean_;
  const int rank_;
  std::vector<int64_t> output_size_;
};

// Equivalent to: the functions of the same names in keras.layers.
LayerPtr AdaptiveAveragePooling1D(int64_t output_size,
                                  const AdaptivePoolingOptions& options = {});
LayerPtr AdaptiveAveragePooling2D(Size2D output_size,
                                  const AdaptivePoolingOptions& options = {});
LayerPtr AdaptiveAveragePooling3D(Size3D output_size,
                                  const AdaptivePoolingOptions& options = {});
LayerPtr AdaptiveMaxPooling1D(int64_t output_size,
                              const AdaptivePoolingOptions& options = {});
LayerPtr AdaptiveMaxPooling2D(Size2D output_size,
                              const AdaptivePoolingOptions& options = {});
LayerPtr AdaptiveMaxPooling3D(Size3D output_size,
                              const AdaptivePoolingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_ADAPTIVE_POOLING_H_
