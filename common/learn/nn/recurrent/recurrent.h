#ifndef COMMON_LEARN_NN_RECURRENT_RECURRENT_H_
#define COMMON_LEARN_NN_RECURRENT_RECURRENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/compute/ops/ops.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/recurrent_layer.h"
#include "common/learn/nn/recurrent/unit_cell.h"
#include "common/learn/nn/regularizers.h"

// Keras' recurrent layers, with Keras' defaults, weight names and gate orders.
// Inputs, outputs and masks are those of RecurrentLayer.
namespace muster {

struct SimpleRNNOptions {
  Activation activation = Activation::kTanh;
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
  SequenceOptions sequence = {};
  std::string name = "";
};

//   h = activation(x kernel + h recurrent_kernel + bias)
//
// Source: keras.layers.SimpleRNN.
template <typename Base>
class SimpleRNNOf : public Base {
 public:
  SimpleRNNOf(int64_t units, const SimpleRNNOptions& options)
      : Base(units, options.name, options.sequence), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  const SimpleRNNOptions& options() const { return options_; }
  void Build(const Shape& input) override;
  int state_count() const override { return 1; }
  Value Project(Value x) override;
  RecurrenceArguments Cell() override;

 private:
  SimpleRNNOptions options_;
  Weight kernel_;            // [features, units]
  Weight recurrent_kernel_;  // [units, units]
  Weight bias_;              // [units]
};

class SimpleRNNLayer : public SimpleRNNOf<RecurrentLayer> {
 public:
  using SimpleRNNOf::SimpleRNNOf;

  LayerPtr Reversed() const override {
    return std::make_shared<SimpleRNNLayer>(units(),
                                            ReversedOptions(options()));
  }
};

// One time step of the layer, for RNN() (rnn.h). Input [batch, features];
// states and weights are those of the layer. Of options.sequence, only the
// dropouts and the seed matter.
class SimpleRNNCellLayer : public SimpleRNNOf<UnitCell> {
 public:
  using SimpleRNNOf::SimpleRNNOf;
};

// Equivalent to: keras.layers.SimpleRNN.
LayerPtr SimpleRNN(int64_t units, const SimpleRNNOptions& options = {});
// Equivalent to: keras.layers.SimpleRNNCell.
LayerPtr SimpleRNNCell(int64_t units, const SimpleRNNOptions& options = {});

struct LSTMOptions {
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
  // The bias of the forget gate is initialized with 1 (Jozefowicz et al.,
  // 2015), and that of the other gates with the bias_initializer.
  bool unit_forget_bias = true;
  SequenceOptions sequence = {};
  std::string name = "";
};

//   i, f, o = recurrent_activation(x kernel + h recurrent_kernel + bias)
//   g = activation(x kernel + h recurrent_kernel + bias)
//   c = f * c + i * g
//   h = o * activation(c)
//
// Each gate uses its columns of the kernels and the bias, which are in the
// order i, f, g, o. States: h, which is also the output, and c.
//
// Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997;
// keras.layers.LSTM.
template <typename Base>
class LSTMOf : public Base {
 public:
  LSTMOf(int64_t units, const LSTMOptions& options)
      : Base(units, options.name, options.sequence), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  const LSTMOptions& options() const { return options_; }
  void Build(const Shape& input) override;
  int state_count() const override { return 2; }
  Value Project(Value x) override;
  RecurrenceArguments Cell() override;

 private:
  // Returns the initializer of the bias with the forget gate's part set to 1.
  Initializer BiasInitializer() const;

  LSTMOptions options_;
  Weight kernel_;            // [features, 4 units]
  Weight recurrent_kernel_;  // [units, 4 units]
  Weight bias_;              // [4 units]
};

class LSTMLayer : public LSTMOf<RecurrentLayer> {
 public:
  using LSTMOf::LSTMOf;

  LayerPtr Reversed() const override {
    return std::make_shared<LSTMLayer>(units(), ReversedOptions(options()));
  }
};

// One time step of the layer, for RNN() (rnn.h). Input [batch, features];
// states and weights are those of the layer. Of options.sequence, only the
// dropouts and the seed matter.
class LSTMCellLayer : public LSTMOf<UnitCell> {
 public:
  using LSTMOf::LSTMOf;
};

// Equivalent to: keras.layers.LSTM.
LayerPtr LSTM(int64_t units, const LSTMOptions& options = {});
// Equivalent to: keras.layers.LSTMCell.
LayerPtr LSTMCell(int64_t units, const LSTMOptions& options = {});

struct GRUOptions {
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
  // True: the reset gate is applied after the recurrent product, which then has
  // its own bias. False: it is applied before.
  bool reset_after = true;
  SequenceOptions sequence = {};
  std::string name = "";
};

//   z, r = recurrent_activation(x kernel + h recurrent_kernel + bias)
//   g = activation(x kernel + (r * h) recurrent_kernel + bias)
//   h = z * h + (1 - z) * g
//
// With `reset_after`:
//
//   g = activation(x kernel + bias[0] + r * (h recurrent_kernel + bias[1]))
//
// Each gate uses its columns of the kernels and the bias, which are in the
// order z, r, g.
//
// Source: Cho et al., "Learning Phrase Representations using RNN
// Encoder-Decoder", 2014 (arXiv:1406.1078); keras.layers.GRU.
template <typename Base>
class GRUOf : public Base {
 public:
  GRUOf(int64_t units, const GRUOptions& options)
      : Base(units, options.name, options.sequence), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  const GRUOptions& options() const { return options_; }
  void Build(const Shape& input) override;
  int state_count() const override { return 1; }
  Value Project(Value x) override;
  RecurrenceArguments Cell() override;

 private:
  Value BiasRow(int64_t row);

  GRUOptions options_;
  Weight kernel_;            // [features, 3 units]
  Weight recurrent_kernel_;  // [units, 3 units]
  Weight bias_;              // [3 units], or [2, 3 units] with reset_after.
};

class GRULayer : public GRUOf<RecurrentLayer> {
 public:
  using GRUOf::GRUOf;

  LayerPtr Reversed() const override {
    return std::make_shared<GRULayer>(units(), ReversedOptions(options()));
  }
};

// One time step of the layer, for RNN() (rnn.h). Input [batch, features];
// states and weights are those of the layer. Of options.sequence, only the
// dropouts and the seed matter.
class GRUCellLayer : public GRUOf<UnitCell> {
 public:
  using GRUOf::GRUOf;
};

// Equivalent to: keras.layers.GRU.
LayerPtr GRU(int64_t units, const GRUOptions& options = {});
// Equivalent to: keras.layers.GRUCell.
LayerPtr GRUCell(int64_t units, const GRUOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_RECURRENT_H_
