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

// Long short-term memory (Hochreiter, 1997). States: output and cell. Gates
// stand side by side: input, forget, cell, output.
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

// Gated recurrent unit (Cho et al., 2014). Gates stand side by side: update,
// reset, candidate.
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
