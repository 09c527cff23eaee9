#ifndef COMMON_LEARN_NN_RECURRENT_RECURRENT_LAYER_H_
#define COMMON_LEARN_NN_RECURRENT_RECURRENT_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/recurrent_units.h"

namespace muster {

// Runs a cell along the time axis. Input [batch, time, features]; output
// [batch, units], or [batch, time, units] with return_sequences. The number of
// time steps may be unknown while tracing, and differ from batch to batch.
//
// Inputs: x; optionally all initial states, each [batch, units]; optionally a
// mask, bool [batch, time]. Where the mask is false, the states keep their
// previous values, and so does the output unless zero_output_for_mask. Without
// a mask input, the mask of x is used if there is one (Embedding(mask_zero)).
//
// With `stateful`, initial states that are no inputs are those that the batch
// before ended with. They are states() of the layer.
//
// One product computes what does not depend on the states, for all time steps.
// The op Recurrence computes the rest (common/compute/ops/recurrence_ops.h).
//
// Source: keras.layers.RNN.
class RecurrentLayer : public RecurrentUnits {
 public:
  int input_count() const override { return kAnyCount; }
  int output_count() const override {
    return sequence_options_.return_state ? 1 + state_count() : 1;
  }
  void VisitConfig(ConfigVisitor& visitor) override;

  const SequenceOptions& sequence_options() const { return sequence_options_; }
  // Must be called before the layer.
  void set_zero_output_for_mask(bool zero_output_for_mask) {
    sequence_options_.zero_output_for_mask = zero_output_for_mask;
  }
  // Returns a new layer with the same hyperparameters and the other direction.
  virtual LayerPtr Reversed() const = 0;

 protected:
  RecurrentLayer(int64_t units, const std::string& name,
                 const SequenceOptions& options)
      : RecurrentUnits(units, name, options) {}

  void BuildMany(absl::Span<const Shape> inputs) override;
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

  // The name of a weight of the cell.
  static std::string WeightName(absl::string_view cell,
                                absl::string_view weight) {
    return absl::StrCat(cell, "/", weight);
  }
  // Returns `options`, of a layer like this one, with the other direction.
  template <typename Options>
  Options ReversedOptions(Options options) const {
    options.sequence = sequence_options_;
    options.sequence.go_backwards = !sequence_options_.go_backwards;
    options.name = "";
    return options;
  }

 private:
  // Returns false, after reporting the reason to the builder, if the inputs are
  // invalid.
  bool Parse(absl::Span<const Value> inputs, Sequence* sequence) const;

  std::vector<Weight> carried_;  // Of a stateful layer.
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_RECURRENT_LAYER_H_
