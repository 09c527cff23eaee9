#ifndef COMMON_LEARN_NN_RECURRENT_RECURRENT_H_
#define COMMON_LEARN_NN_RECURRENT_RECURRENT_H_

#include <cstdint>
#include <string>

#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/recurrent_layer.h"
#include "common/learn/nn/regularizers.h"
#include "proto/variable.pb.h"

// Keras' recurrent layers, with its defaults, weight names and orders of gates.
// RecurrentLayer says what they take and give.
namespace muster {

struct SimpleRNNOptions {
  Activation activation = Activation::kTanh;
  bool use_bias = true;
  proto::Initializer kernel_initializer = GlorotUniform();
  proto::Initializer recurrent_initializer = Orthogonal();
  proto::Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  SequenceOptions sequence = {};
  std::string name = "";
};

// h = activation(x kernel + h recurrent_kernel + bias)
//
// Source: keras.layers.SimpleRNN.
class SimpleRNNLayer : public RecurrentLayer {
 public:
  SimpleRNNLayer(int64_t units, const SimpleRNNOptions& options)
      : RecurrentLayer(units, options.name, options.sequence),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  int state_count() const override { return 1; }
  Value Project(Value rows) override;
  States Step(Value projected, const States& states) override;
  void ReadWeights() override;

 private:
  SimpleRNNOptions options_;
  Weight kernel_;            // [features, units]
  Weight recurrent_kernel_;  // [units, units]
  Weight bias_;              // [units]
  Value recurrent_;          // While being called.
};

// Equivalent to: keras.layers.SimpleRNN.
LayerPtr SimpleRNN(int64_t units, const SimpleRNNOptions& options = {});

struct LSTMOptions {
  Activation activation = Activation::kTanh;
  Activation recurrent_activation = Activation::kSigmoid;
  bool use_bias = true;
  proto::Initializer kernel_initializer = GlorotUniform();
  proto::Initializer recurrent_initializer = Orthogonal();
  proto::Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  // The forget gate's bias starts at 1 (Jozefowicz et al., 2015); the others'
  // initializer must be a constant then.
  bool unit_forget_bias = true;
  SequenceOptions sequence = {};
  std::string name = "";
};

// i, f, o = recurrent_activation(x kernel + h recurrent_kernel + bias), each
// its part of them, and likewise g = activation(...) c = f * c + i * g h = o *
// activation(c)
//
// States: h, which is the output, and c. In kernels and bias the gates stand
// side by side in the order i, f, g, o.
//
// Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997;
// keras.layers.LSTM.
class LSTMLayer : public RecurrentLayer {
 public:
  LSTMLayer(int64_t units, const LSTMOptions& options)
      : RecurrentLayer(units, options.name, options.sequence),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  int state_count() const override { return 2; }
  Value Project(Value rows) override;
  States Step(Value projected, const States& states) override;
  void ReadWeights() override;

 private:
  // Fills in the forget gate's part.
  proto::Initializer BiasInitializer() const;

  LSTMOptions options_;
  Weight kernel_;            // [features, 4 units]
  Weight recurrent_kernel_;  // [units, 4 units]
  Weight bias_;              // [4 units]
  Value recurrent_;          // While being called.
};

// Equivalent to: keras.layers.LSTM.
LayerPtr LSTM(int64_t units, const LSTMOptions& options = {});

struct GRUOptions {
  Activation activation = Activation::kTanh;
  Activation recurrent_activation = Activation::kSigmoid;
  bool use_bias = true;
  proto::Initializer kernel_initializer = GlorotUniform();
  proto::Initializer recurrent_initializer = Orthogonal();
  proto::Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  // Whether the reset gate is applied after the recurrent product, which then
  // has a bias of its own, or before.
  bool reset_after = true;
  SequenceOptions sequence = {};
  std::string name = "";
};

// z, r = recurrent_activation(x kernel + h recurrent_kernel + bias), each its
// part of them
// g = activation(x kernel + (r * h) recurrent_kernel + bias), or with
//     `reset_after` activation(x kernel + bias[0] +
//                              r * (h recurrent_kernel + bias[1]))
// h = z * h + (1 - z) * g
//
// In kernels and bias the gates stand side by side in the order z, r, g.
//
// Source: Cho et al., "Learning Phrase Representations using RNN
// Encoder-Decoder", 2014 (arXiv:1406.1078); keras.layers.GRU.
class GRULayer : public RecurrentLayer {
 public:
  GRULayer(int64_t units, const GRUOptions& options)
      : RecurrentLayer(units, options.name, options.sequence),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  int state_count() const override { return 1; }
  Value Project(Value rows) override;
  States Step(Value projected, const States& states) override;
  void ReadWeights() override;

 private:
  GRUOptions options_;
  Weight kernel_;            // [features, 3 units]
  Weight recurrent_kernel_;  // [units, 3 units]
  Weight bias_;              // [3 units], or [2, 3 units] with reset_after.
  // While being called: all gates' kernel with reset_after, otherwise those of
  // the gates and of the candidate.
  Value recurrent_;
  Value recurrent_candidate_;
  Value recurrent_bias_;
};

// Equivalent to: keras.layers.GRU.
LayerPtr GRU(int64_t units, const GRUOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_RECURRENT_H_
