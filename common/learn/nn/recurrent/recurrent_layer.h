#ifndef COMMON_LEARN_NN_RECURRENT_RECURRENT_LAYER_H_
#define COMMON_LEARN_NN_RECURRENT_RECURRENT_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/layer.h"

namespace muster {

// Options that SimpleRNN, LSTM and GRU share.
struct SequenceOptions {
  // The share of the inputs, and of the previous output, that is set to 0 while
  // training. All time steps use the same dropout mask.
  double dropout = 0;
  double recurrent_dropout = 0;
  bool return_sequences = false;  // All outputs instead of the last.
  bool return_state = false;      // Returns the last states as well.
  bool go_backwards = false;      // Processes the sequence reversed.
  // The output of a masked time step is 0, not the previous output.
  bool zero_output_for_mask = false;
  uint64_t seed = 0;  // Of dropout; 0: derived from the model's.
};

// Runs a cell along the time axis. Input [batch, time, features]; output
// [batch, units], or [batch, time, units] with return_sequences. The number of
// time steps may be unknown while tracing, and differ from batch to batch.
//
// Inputs: x; optionally all initial states, each [batch, units]; optionally a
// mask, bool [batch, time]. Where the mask is false, the states keep their
// previous values, and so does the output unless zero_output_for_mask. Without
// a mask input, the mask of x is used if there is one (Embedding(mask_zero)).
//
// One product computes what does not depend on the states, for all time steps.
// The op Recurrence computes the rest (common/compute/ops/recurrence_ops.h).
//
// Source: keras.layers.RNN.
class RecurrentLayer : public Layer {
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
  using States = std::vector<Value>;

  RecurrentLayer(int64_t units, const std::string& name,
                 const SequenceOptions& options)
      : Layer(name), units_(units), sequence_options_(options) {}

  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

  // The number of states of the cell. The first state is the output.
  virtual int state_count() const = 0;
  // Computes what does not depend on the states: [batch, time, features] to
  // [batch, time, any].
  virtual Value Project(Value x) = 0;
  // Returns the cell, its activations, kernel and recurrent bias.
  virtual RecurrenceArguments Cell() = 0;

  int64_t units() const { return units_; }
  // Returns `options`, of a layer like this one, with the other direction.
  template <typename Options>
  Options ReversedOptions(Options options) const {
    options.sequence = sequence_options_;
    options.sequence.go_backwards = !sequence_options_.go_backwards;
    options.name = "";
    return options;
  }

 private:
  // The parsed inputs.
  struct Sequence {
    Value x;
    States initial;  // Empty: zeros.
    Value mask;      // Poisoned if there is none.
  };
  // Returns x as the projection sees it.
  Value DropInputs(Value x, const CallContext& context) const;
  // Returns false, after reporting the reason to the builder, if the inputs are
  // invalid.
  bool Parse(absl::Span<const Value> inputs, Sequence* sequence) const;
  // Returns a tensor of 0 and 1 / (1 - rate) in the shape of `like`. `draw`
  // distinguishes the uses within a layer.
  Value DropoutScale(Value like, double rate, int64_t draw,
                     const CallContext& context) const;

  int64_t units_;
  SequenceOptions sequence_options_;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_RECURRENT_LAYER_H_
