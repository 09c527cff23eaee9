#ifndef COMMON_LEARN_NN_RECURRENT_RNN_CELL_H_
#define COMMON_LEARN_NN_RECURRENT_RNN_CELL_H_

#include <vector>

#include "common/core/tensor/shape.h"

namespace muster {

// The interface of a cell of RNN() (rnn.h): a class that is a Layer and an
// RNNCell. CallMany() gets the input of one time step, [batch, ...], followed
// by the states, and returns the output followed by the next states, of the
// same shapes. RNN() calls it in a Scan(), so it has no effects,
// and draws the same random numbers in each time step.
//
//   class Counter : public Layer, public RNNCell {
//    public:
//     int input_count() const override { return 2; }
//     int output_count() const override { return 2; }
//     std::vector<Shape> StateShapes(const Shape& input) const override {
//       return {{1}};
//     }
//
//    protected:
//     std::vector<Value> CallMany(absl::Span<const Value> inputs,
//                                 const CallContext&) override {
//       const Value count = inputs[1] + Sum(inputs[0], {1}, {.keep_dims =
//       true}); return {count, count};
//     }
//   };
//
// Equivalent to: the cells of keras.layers.RNN.
class RNNCell {
 public:
  virtual ~RNNCell() = default;

  // The shapes of the states without the batch, for inputs [batch, ...] of one
  // time step. At least one state.
  virtual std::vector<Shape> StateShapes(const Shape& input) const = 0;
  // The shape of the output without the batch: that of the first state.
  virtual Shape OutputShape(const Shape& input) const {
    return StateShapes(input).front();
  }
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_RNN_CELL_H_
