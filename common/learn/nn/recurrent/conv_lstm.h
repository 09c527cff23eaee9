#ifndef COMMON_LEARN_NN_RECURRENT_CONV_LSTM_H_
#define COMMON_LEARN_NN_RECURRENT_CONV_LSTM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/window.h"

namespace muster {

// `Size` is int64_t, Size2D or Size3D.
template <typename Size>
struct ConvLSTMOptions {
  Size strides = 1;
  Padding padding = Padding::kValid;
  Size dilation_rate = 1;
  Activation activation = Activation::kTanh;
  Activation recurrent_activation = Activation::kSigmoid;
  bool use_bias = true;
  Initializer kernel_initializer = GlorotUniform();
  Initializer recurrent_initializer = Orthogonal();
  Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  // As LSTMOptions::unit_forget_bias.
  bool unit_forget_bias = true;
  // As SequenceOptions, but each gate has dropout masks of its own.
  double dropout = 0;
  double recurrent_dropout = 0;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool zero_output_for_mask = false;
  bool stateful = false;
  uint64_t seed = 0;  // Of dropout; 0: derived from the model's.
  std::string name = "";
};

// An LSTM whose products are convolutions, of sequences, images or volumes:
//
//   i, f, o = recurrent_activation(x * kernel + h * recurrent_kernel + bias)
//   g = activation(x * kernel + h * recurrent_kernel + bias)
//   c = f c + i g
//   h = o activation(c)
//
// Each gate uses its part of the last axis of the kernels and of the bias, in
// the order i, f, g, o. x is convolved with the strides, the padding and the
// dilation rate, h with strides of 1 and padding of the same size.
//
// Input [batch, time, extents..., channels], of one, two or three extents;
// optionally the initial states h and c, [batch, extents'..., filters];
// optionally a mask, bool [batch, time], which is heeded as by RecurrentLayer.
// Extents and channels must be known, the number of time steps may be unknown.
// Output h after the last step, or with return_sequences all, [batch, time,
// extents'..., filters]; and with return_state h and c after the last step.
//
// Weights: kernel [kernel_size..., channels, 4 filters], recurrent_kernel
// [kernel_size..., filters, 4 filters], bias [4 filters].
//
// Runs in a Scan(), which costs the calls of its kernels in every time step,
// and on a GPU copies to the host.
//
// Source: Shi et al., "Convolutional LSTM Network", 2015 (arXiv:1506.04214);
// keras.layers.ConvLSTM1D, ConvLSTM2D and ConvLSTM3D.
template <typename Size>
class ConvLSTMLayer : public Layer {
 public:
  ConvLSTMLayer(int64_t filters, Size kernel_size,
                const ConvLSTMOptions<Size>& options)
      : Layer(options.name),
        filters_(filters),
        kernel_size_(kernel_size),
        options_(options) {}

  std::string kind() const override {
    return absl::StrCat("ConvLSTM", Rank(), "D");
  }
  int input_count() const override { return kAnyCount; }
  int output_count() const override { return options_.return_state ? 3 : 1; }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  void BuildMany(absl::Span<const Shape> inputs) override;
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  static int Rank();
  // Returns the mistake in the options or the input; empty if there is none.
  std::string Mistake(const Shape& input) const;
  // The extents of a state without the batch.
  std::vector<int64_t> StateDims(const Shape& input) const;
  // The inputs of the gates, [batch, extents'..., 4 filters], of x [batch,
  // extents..., channels].
  Value Project(Value x, Value kernel, const CallContext& context) const;
  Value Recur(Value h, Value kernel, const CallContext& context) const;
  // A convolution of each gate, with dropout of its own if there is one.
  Value ConvolveGates(Value x, Value kernel, double rate, uint64_t draw,
                      Size strides, Padding padding, Size dilations,
                      const CallContext& context) const;

  int64_t filters_;
  Size kernel_size_;
  ConvLSTMOptions<Size> options_;
  Weight kernel_;
  Weight recurrent_kernel_;
  Weight bias_;
  std::vector<Weight> carried_;  // Of a stateful layer.
};

// Equivalent to: the functions of the same names in keras.layers.
LayerPtr ConvLSTM1D(int64_t filters, int64_t kernel_size,
                    const ConvLSTMOptions<int64_t>& options = {});
LayerPtr ConvLSTM2D(int64_t filters, Size2D kernel_size,
                    const ConvLSTMOptions<Size2D>& options = {});
LayerPtr ConvLSTM3D(int64_t filters, Size3D kernel_size,
                    const ConvLSTMOptions<Size3D>& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_CONV_LSTM_H_
