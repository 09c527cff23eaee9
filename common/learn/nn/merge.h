#ifndef COMMON_LEARN_NN_MERGE_H_
#define COMMON_LEARN_NN_MERGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"

// Layers that make one value of several; without weights:
//
//   x = Add()({x, shortcut});
//
// Source: the classes of these names in keras.layers.
namespace muster {

enum class MergeFunction {
  kAdd,
  kSubtract,  // Of exactly two.
  kMultiply,
  kAverage,
  kMaximum,
  kMinimum,
};

struct MergeOptions {
  std::string name = "";
};

// Element by element, of two inputs or more, with broadcasting of extents that
// are 1. Where all inputs have masks, what is padding in all of them is padding
// of the output.
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
  int64_t axis = -1;  // The batch is axis 0.
  std::string name = "";
};

// One after another along `axis`: its extent is the sum of the inputs', and the
// other extents are equal. Along the last axis
// a position is padding where it is in all inputs; along others each input
// keeps its mask, [batch, ...] without the last axis.
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
  // A poisoned value where nothing is padding.
  Value MaskOf(absl::Span<const Value> inputs, const Masks& masks) const;

  int64_t axis_;
};

// Equivalent to: keras.layers.Concatenate.
LayerPtr Concatenate(const ConcatenateOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_MERGE_H_
