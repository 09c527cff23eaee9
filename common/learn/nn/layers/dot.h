#ifndef COMMON_LEARN_NN_LAYERS_DOT_H_
#define COMMON_LEARN_NN_LAYERS_DOT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct DotOptions {
  // Scales both inputs to an L2 norm of 1 along their axis, so that the result
  // is their cosine similarity.
  bool normalize = false;
  std::string name = "";
};

// The sum of the products of two inputs along one axis of each, example by
// example. With a of shape [batch, m..., k] and b of shape [batch, k, n...],
// where the axes of extent k may be any but the first,
//
//   y[batch, m..., n...] = sum over k of a[batch, m..., k] * b[batch, k, n...]
//
// Two inputs of rank 2 result in [batch, 1]. All extents but the batch must be
// known. The output has no mask.
//
// Source: keras.layers.Dot.
class DotLayer : public Layer {
 public:
  // `axes`: one axis for both inputs, or one for each. Negative axes count from
  // the last one.
  DotLayer(const std::vector<int64_t>& axes, const DotOptions& options);

  int input_count() const override { return 2; }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  std::vector<int64_t> axes_;
  bool normalize_;
};

// Example: Dot({1}), Dot({2, 1}).
//
// Equivalent to: keras.layers.Dot.
LayerPtr Dot(const std::vector<int64_t>& axes, const DotOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_DOT_H_
