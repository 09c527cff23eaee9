#ifndef COMMON_LEARN_NN_RECURRENT_RECURRENT_UNITS_H_
#define COMMON_LEARN_NN_RECURRENT_RECURRENT_UNITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/ops/ops.h"
#include "common/learn/nn/layer.h"

namespace muster {

// Options that SimpleRNN, LSTM and GRU share. Their cells have the dropouts and
// the seed alone.
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
  // The last states are the initial states of the next batch, of training and
  // of inference: example i of a batch continues example i of the one before.
  // Model::ResetStates() makes them zeros. The layer needs an Input() with a
  // batch_size, and a strategy with one replica.
  bool stateful = false;
  uint64_t seed = 0;  // Of dropout; 0: derived from the model's.
};

// The part of a recurrent layer of the op Recurrence that is also its cell's:
// the units, the projection of inputs and the recurrence.
class RecurrentUnits : public Layer {
 protected:
  using States = std::vector<Value>;

  // A sequence, and how to run over it.
  struct Sequence {
    Value x;         // [batch, time, features]
    States initial;  // [batch, units] each; empty: zeros.
    Value mask;      // bool [batch, time]; poisoned if there is none.
    bool go_backwards = false;
    bool zero_output_for_mask = false;
  };

  RecurrentUnits(int64_t units, const std::string& name,
                 const SequenceOptions& options)
      : Layer(name), units_(units), sequence_options_(options) {}

  // The number of states. The first state is the output.
  virtual int state_count() const = 0;
  // Computes what does not depend on the states: [batch, time, features] to
  // [batch, time, any].
  virtual Value Project(Value x) = 0;
  // Returns the cell, its activations, kernel and recurrent bias.
  virtual RecurrenceArguments Cell() = 0;

  // Visits units, dropouts and seed.
  void VisitUnits(ConfigVisitor& visitor);
  // Returns the mistake in units and dropouts; empty if there is none.
  std::string Mistake() const;
  // Runs over the sequence. Outputs are poisoned if Project() reports.
  RecurrenceOutputs Run(Sequence sequence, const CallContext& context);

  int64_t units() const { return units_; }

  int64_t units_;
  SequenceOptions sequence_options_;

 private:
  // Returns x as the projection sees it.
  Value DropInputs(Value x, const CallContext& context) const;
  // Returns a tensor of 0 and 1 / (1 - rate) in the shape of `like`. `draw`
  // distinguishes the uses within a layer.
  Value DropoutScale(Value like, double rate, int64_t draw,
                     const CallContext& context) const;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_RECURRENT_UNITS_H_
