#ifndef COMMON_LEARN_NN_LAYERS_MERGE_H_
#define COMMON_LEARN_NN_LAYERS_MERGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"

// Layers that combine several inputs into one output. No weights:
//
//   x = Add()({x, shortcut});
//
// Source: the classes of these names in keras.layers.
namespace muster {

enum class MergeFunction {
  kAdd,
  kSubtract,  // Exactly two inputs.
  kMultiply,
  kAverage,
  kMaximum,
  kMinimum,
};

struct MergeOptions {
  std::string name = "";
};

// Applies the function elementwise to two or more inputs. Extents of 1 are
// broadcast. If all inputs have masks, the output is masked where all inputs
// are masked.
//
// As in Keras, masks of all axes but the last one change numbers, too:
// kMultiply takes masked positions for 1 and returns 0 where all inputs are
// masked; kMaximum and kMinimum return the other input where one is masked, and
// the first one where all are.
class MergeLayer : public Layer {
 public:
  MergeLayer(MergeFunction function, const MergeOptions& options)
      : Layer(options.name), function_(function) {}

  int input_count() const override { return kAnyCount; }
  std::string kind() const override;

 protected:
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  // `counted`: the mask of the output; poisoned if it has none.
  Value Merged(absl::Span<const Value> inputs, const Masks& masks,
               Value counted) const;

  const MergeFunction function_;
};

// Equivalent to: the classes of these names in keras.layers.
LayerPtr Add(const MergeOptions& options = {});
LayerPtr Subtract(const MergeOptions& options = {});
LayerPtr Multiply(const MergeOptions& options = {});
LayerPtr Average(const MergeOptions& options = {});
LayerPtr Maximum(const MergeOptions& options = {});
LayerPtr Minimum(const MergeOptions& options = {});

struct ConcatenateOptions {
  int64_t axis = -1;  // The batch axis is 0.
  std::string name = "";
};

// Concatenates the inputs along `axis`. The other extents must be equal. Along
// the last axis, a position of the output is masked where it is masked in all
// inputs. Along other axes, the masks, of shape [batch, ...] without the last
// axis, are concatenated.
class ConcatenateLayer : public Layer {
 public:
  explicit ConcatenateLayer(const ConcatenateOptions& options)
      : Layer(options.name), axis_(options.axis) {}

  int input_count() const override { return kAnyCount; }

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  // Returns a poisoned value if no position is masked.
  Value MaskOf(absl::Span<const Value> inputs, const Masks& masks) const;

  int64_t axis_;
};

// Equivalent to: keras.layers.Concatenate.
LayerPtr Concatenate(const ConcatenateOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_MERGE_H_
