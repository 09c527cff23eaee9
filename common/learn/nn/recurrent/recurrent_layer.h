#ifndef COMMON_LEARN_NN_RECURRENT_RECURRENT_LAYER_H_
#define COMMON_LEARN_NN_RECURRENT_RECURRENT_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/learn/nn/layer.h"

namespace muster {

// What SimpleRNN, LSTM and GRU have in common.
struct SequenceOptions {
  // While training, the share of the inputs and of the previous output that is
  // set to 0, the same at every time.
  double dropout = 0;
  double recurrent_dropout = 0;
  bool return_sequences = false;  // The outputs of all times, not the last.
  bool return_state = false;      // The last states as further outputs.
  bool go_backwards = false;      // From the last time to the first.
  uint64_t seed = 0;              // Of dropout; 0: from the model's.
};

// A cell run along the time axis: [batch, time, features] to [batch, units], or
// to [batch, time, units] where sequences are returned. The number of times
// must be known while tracing: the graph has nodes for each.
//
// Inputs: x; then the initial states, all or none, [batch, units]; then, if
// wanted, a mask, bool [batch, time]: where it is false states and output stay
// what they were. Without one, that of x where the model knows it
// (Embedding(mask_zero)).
class RecurrentLayer : public Layer {
 public:
  int input_count() const override { return kAnyCount; }
  int output_count() const override {
    return sequence_options_.return_state ? 1 + state_count() : 1;
  }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  using States = std::vector<Value>;

  RecurrentLayer(int64_t units, const std::string& name,
                 const SequenceOptions& options)
      : Layer(name), units_(units), sequence_options_(options) {}

  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

  // The cell. States begin with the output.
  virtual int state_count() const = 0;
  // What can be computed of all times at once: rows [n, features] to [n, any].
  virtual Value Project(Value rows) = 0;
  // One time. `projected` is what Project() made of its rows.
  virtual States Step(Value projected, const States& states) = 0;
  // Reads what Step() needs of the weights, once for all times.
  virtual void ReadWeights() = 0;

  int64_t units() const { return units_; }

 private:
  // What came in, told apart.
  struct Sequence {
    Value x;
    States initial;  // Empty for zeros.
    Value mask;      // Poisoned without one.
  };
  // Reports what is wrong with the inputs; false then.
  bool Parse(absl::Span<const Value> inputs, Sequence* sequence) const;
  // What Project() made of each time, in the order in which times are run.
  std::vector<Value> ProjectTimes(Value x, const CallContext& context);
  // Multiplies by 0 or by 1 / (1 - rate). `draw` tells uses apart.
  Value DropoutScale(Value like, double rate, int64_t draw,
                     const CallContext& context) const;

  int64_t units_;
  SequenceOptions sequence_options_;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_RECURRENT_LAYER_H_
