#ifndef COMMON_LEARN_NN_RECURRENT_RNN_H_
#define COMMON_LEARN_NN_RECURRENT_RNN_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/rnn_cell.h"
#include "common/learn/nn/weight.h"
#include "common/learn/nn/wrapper.h"

// Recurrent layers of any cell.
namespace muster {

struct StackedRNNCellsOptions {
  std::string name = "";
};

// Cells one after another as one cell: each gets the output of the one before.
// Its states are those of all cells, in their order.
//
// Source: keras.layers.StackedRNNCells.
class StackedRNNCellsLayer : public WrapperLayer, public RNNCell {
 public:
  StackedRNNCellsLayer(const std::vector<LayerPtr>& cells,
                       const StackedRNNCellsOptions& options);

  int input_count() const override { return kAnyCount; }
  int output_count() const override;
  void VisitConfig(ConfigVisitor& visitor) override;
  std::vector<Part> parts() const override;
  std::vector<Shape> StateShapes(const Shape& input) const override;
  Shape OutputShape(const Shape& input) const override;

 protected:
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  std::vector<LayerPtr> cells_;
};

// Example: RNN(StackedRNNCells({LSTMCell(8), GRUCell(4)})).
//
// Equivalent to: keras.layers.StackedRNNCells.
LayerPtr StackedRNNCells(const std::vector<LayerPtr>& cells,
                         const StackedRNNCellsOptions& options = {});

struct RNNOptions {
  bool return_sequences = false;  // All outputs instead of the last.
  bool return_state = false;      // Returns the last states as well.
  bool go_backwards = false;      // Processes the sequence reversed.
  // The output of a masked time step is 0, not the previous output.
  bool zero_output_for_mask = false;
  bool stateful = false;  // As SequenceOptions.
  std::string name = "";
};

// Runs a cell along the time axis. The cell is SimpleRNNCell(), LSTMCell(),
// GRUCell(), StackedRNNCells(), or a layer of the program's own that is an
// RNNCell.
//
// Inputs: x, [batch, time, ...]; optionally all initial states, which are zeros
// otherwise; optionally a mask, bool [batch, time]. Masks are heeded as by
// RecurrentLayer. Outputs: the last output, or all of them, [batch, time, ...],
// and with return_state the last states. The number of time steps may be
// unknown while tracing; other extents but the batch's must be known.
//
// Cells of units run as one op, as LSTM() does. Others run in a Scan(), which
// costs the calls of their kernels in every time step, and on a GPU copies to
// the host.
//
// Source: keras.layers.RNN.
class RNNLayer : public WrapperLayer {
 public:
  RNNLayer(const LayerPtr& cell, const RNNOptions& options);

  int input_count() const override { return kAnyCount; }
  int output_count() const override;
  void VisitConfig(ConfigVisitor& visitor) override;
  std::vector<Part> parts() const override;

 protected:
  void BuildMany(absl::Span<const Shape> inputs) override;
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  LayerPtr cell_;
  RNNOptions options_;
  std::vector<Weight> carried_;  // Of a stateful layer.
};

// Equivalent to: keras.layers.RNN.
LayerPtr RNN(const LayerPtr& cell, const RNNOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_RNN_H_
