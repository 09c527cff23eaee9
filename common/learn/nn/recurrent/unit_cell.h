#ifndef COMMON_LEARN_NN_RECURRENT_UNIT_CELL_H_
#define COMMON_LEARN_NN_RECURRENT_UNIT_CELL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/recurrent_units.h"
#include "common/learn/nn/recurrent/rnn_cell.h"

namespace muster {

// The cell of SimpleRNN, LSTM or GRU. Inputs: x [batch, features] and the
// states, [batch, units] each. Outputs: the output, which is the first state,
// and the next states.
//
// Source: keras.layers.SimpleRNNCell, LSTMCell and GRUCell.
class UnitCell : public RecurrentUnits, public RNNCell {
 public:
  int input_count() const override { return kAnyCount; }
  int output_count() const override { return 1 + state_count(); }
  std::vector<Shape> StateShapes(const Shape& input) const override;
  void VisitConfig(ConfigVisitor& visitor) override { VisitUnits(visitor); }

  // A sequence in place of one time step.
  struct Steps {
    Value x;                     // [batch, time, features]
    std::vector<Value> initial;  // Empty: zeros.
    Value mask;                  // bool [batch, time], or poisoned.
    bool go_backwards = false;
    bool zero_output_for_mask = false;
  };
  // Runs over a sequence with one op (recurrence_ops.h), which computes what as
  // many calls would.
  RecurrenceOutputs CallOnSteps(const Steps& steps, const CallContext& context);

 protected:
  using RecurrentUnits::RecurrentUnits;

  static std::string WeightName(absl::string_view /*cell*/,
                                absl::string_view weight) {
    return std::string(weight);
  }
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  const Steps* steps_ = nullptr;  // During CallOnSteps().
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_UNIT_CELL_H_
