#ifndef COMMON_COMPUTE_OPS_RECURRENCE_OPS_H_
#define COMMON_COMPUTE_OPS_RECURRENCE_OPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/graph/graph_builder.h"

namespace muster {

// A recurrent layer over all steps of its sequences, as one node. The part that
// does not depend on the state - the product of the inputs with their kernel,
// and the bias - is computed before, for all steps at once.
//
// h is the output of the previous step, times `scale` if there is one; p is the
// row of `projected`. Gates are columns of the kernel, in this order:
//
//   simple_rnn        h' = activation(p + h kernel)
//   lstm              i, f, g, o = p + h kernel
//                     c' = recurrent_activation(f) * c +
//                          recurrent_activation(i) * activation(g)
//                     h' = recurrent_activation(o) * activation(c')
//   gru_reset_after   z, r, g = h kernel + recurrent_bias
//                     z, r = recurrent_activation(p + (z, r))
//                     h' = z * h + (1 - z) * activation(p + r * g)
//   gru_reset_before  z, r = recurrent_activation(p + h kernel)
//                     h' = z * h + (1 - z) * activation(p + (r * h) kernel)
//
// Source: keras.layers.SimpleRNN, LSTM and GRU.
struct RecurrenceArguments {
  std::string cell;
  int64_t units = 0;
  // Keras' names, as in common/learn/nn/activations.h.
  std::string activation = "tanh";
  std::string recurrent_activation = "sigmoid";
  // Steps run from the last time to the first. Outputs are in the order of
  // steps.
  bool go_backwards = false;
  // The output of a masked step is 0, not that of the previous step.
  bool zero_output_for_mask = false;
  // The node also returns the values that its gradient needs. If false, a
  // gradient computes the recurrence again.
  bool keep_steps = false;

  Value projected;             // [batch, time, gates units]
  Value kernel;                // [units, gates units]
  std::vector<Value> initial;  // h, and c of lstm; each [batch, units].
  Value recurrent_bias;        // [gates units]; of gru_reset_after only.
  Value scale;                 // [batch, units], or none.
  // bool [batch, time], or none. Where it is false, the states do not change.
  Value mask;
};

struct RecurrenceOutputs {
  Value outputs;            // [batch, time, units]
  Value last_output;        // [batch, units]
  std::vector<Value> last;  // The states after the last step.
};

// All operands but the mask have one floating dtype. Gradients flow to all of
// them. Cannot be differentiated twice.
RecurrenceOutputs Recurrence(const RecurrenceArguments& arguments);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_RECURRENCE_OPS_H_
