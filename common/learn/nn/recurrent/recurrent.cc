#include "common/learn/nn/recurrent/recurrent.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// CallMany() reports values below 1. Shape would read -1 as unknown.
int64_t AtLeastZero(int64_t units) { return std::max<int64_t>(units, 0); }

int64_t Features(const Shape& input) {
  return input.rank() == 0 ? 0 : input.dims().back();
}

// Visits the hyperparameters that all cells have.
template <typename Options>
void VisitCell(ConfigVisitor& visitor, Options& options) {
  visitor.Visit("activation", options.activation);
  visitor.Visit("use_bias", options.use_bias);
  visitor.VisitWeight("kernel", options.kernel_initializer,
                      options.kernel_regularizer);
  visitor.VisitWeight("recurrent", options.recurrent_initializer,
                      options.recurrent_regularizer);
  visitor.VisitWeight("bias", options.bias_initializer,
                      options.bias_regularizer);
}

RecurrenceArguments Recurrent(absl::string_view cell, Activation activation,
                              Activation recurrent_activation, Value kernel) {
  RecurrenceArguments arguments;
  arguments.cell = std::string(cell);
  arguments.activation = std::string(ActivationName(activation));
  arguments.recurrent_activation =
      std::string(ActivationName(recurrent_activation));
  arguments.kernel = kernel;
  return arguments;
}

}  // namespace

void SimpleRNNLayer::VisitConfig(ConfigVisitor& visitor) {
  RecurrentLayer::VisitConfig(visitor);
  VisitCell(visitor, options_);
}

void SimpleRNNLayer::Build(const Shape& input) {
  const int64_t units = AtLeastZero(this->units());
  kernel_ = AddWeight("simple_rnn_cell/kernel", {Features(input), units},
                      options_.kernel_initializer,
                      {.regularizer = options_.kernel_regularizer});
  recurrent_kernel_ =
      AddWeight("simple_rnn_cell/recurrent_kernel", {units, units},
                options_.recurrent_initializer,
                {.regularizer = options_.recurrent_regularizer});
  if (options_.use_bias) {
    bias_ =
        AddWeight("simple_rnn_cell/bias", {units}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer});
  }
}

Value SimpleRNNLayer::Project(Value x) {
  const Value y = MatMul(x, kernel_);
  return options_.use_bias ? y + bias_ : y;
}

RecurrenceArguments SimpleRNNLayer::Cell() {
  return Recurrent("simple_rnn", options_.activation, Activation::kSigmoid,
                   recurrent_kernel_);
}

LayerPtr SimpleRNN(int64_t units, const SimpleRNNOptions& options) {
  return std::make_shared<SimpleRNNLayer>(units, options);
}

void LSTMLayer::VisitConfig(ConfigVisitor& visitor) {
  RecurrentLayer::VisitConfig(visitor);
  VisitCell(visitor, options_);
  visitor.Visit("recurrent_activation", options_.recurrent_activation);
  visitor.Visit("unit_forget_bias", options_.unit_forget_bias);
}

void LSTMLayer::Build(const Shape& input) {
  const int64_t units = AtLeastZero(this->units());
  kernel_ = AddWeight("lstm_cell/kernel", {Features(input), 4 * units},
                      options_.kernel_initializer,
                      {.regularizer = options_.kernel_regularizer});
  recurrent_kernel_ =
      AddWeight("lstm_cell/recurrent_kernel", {units, 4 * units},
                options_.recurrent_initializer,
                {.regularizer = options_.recurrent_regularizer});
  if (options_.use_bias) {
    bias_ = AddWeight("lstm_cell/bias", {4 * units}, BiasInitializer(),
                      {.regularizer = options_.bias_regularizer});
  }
}

Initializer LSTMLayer::BiasInitializer() const {
  const proto::Initializer& others = options_.bias_initializer.definition();
  if (!options_.unit_forget_bias || !others.has_constant()) {
    return options_.bias_initializer;
  }
  const int64_t units = AtLeastZero(this->units());
  Tensor bias(DType::kFloat32, {4 * units});
  const auto values = bias.mutable_flat<float>();
  std::fill(values.begin(), values.end(),
            static_cast<float>(others.constant().value()));
  std::fill_n(values.begin() + units, units, 1.0f);
  return FixedValue(bias);
}

Value LSTMLayer::Project(Value x) {
  if (options_.use_bias && options_.unit_forget_bias &&
      !options_.bias_initializer.definition().has_constant()) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        "LSTM: unit_forget_bias needs a bias_initializer that is a constant"));
    return Value();
  }
  const Value y = MatMul(x, kernel_);
  return options_.use_bias ? y + bias_ : y;
}

RecurrenceArguments LSTMLayer::Cell() {
  return Recurrent("lstm", options_.activation, options_.recurrent_activation,
                   recurrent_kernel_);
}

LayerPtr LSTM(int64_t units, const LSTMOptions& options) {
  return std::make_shared<LSTMLayer>(units, options);
}

void GRULayer::VisitConfig(ConfigVisitor& visitor) {
  RecurrentLayer::VisitConfig(visitor);
  VisitCell(visitor, options_);
  visitor.Visit("recurrent_activation", options_.recurrent_activation);
  visitor.Visit("reset_after", options_.reset_after);
}

void GRULayer::Build(const Shape& input) {
  const int64_t units = AtLeastZero(this->units());
  kernel_ = AddWeight("gru_cell/kernel", {Features(input), 3 * units},
                      options_.kernel_initializer,
                      {.regularizer = options_.kernel_regularizer});
  recurrent_kernel_ =
      AddWeight("gru_cell/recurrent_kernel", {units, 3 * units},
                options_.recurrent_initializer,
                {.regularizer = options_.recurrent_regularizer});
  if (options_.use_bias) {
    const Shape shape =
        options_.reset_after ? Shape{2, 3 * units} : Shape{3 * units};
    bias_ = AddWeight("gru_cell/bias", shape, options_.bias_initializer,
                      {.regularizer = options_.bias_regularizer});
  }
}

Value GRULayer::Project(Value x) {
  const Value y = MatMul(x, kernel_);
  if (!options_.use_bias) return y;
  return y + (options_.reset_after ? BiasRow(0) : Value(bias_));
}

Value GRULayer::BiasRow(int64_t row) {
  return Squeeze(Slice(bias_, {row, 0}, {1, -1}), {0});
}

RecurrenceArguments GRULayer::Cell() {
  RecurrenceArguments arguments = Recurrent(
      options_.reset_after ? "gru_reset_after" : "gru_reset_before",
      options_.activation, options_.recurrent_activation, recurrent_kernel_);
  if (!options_.reset_after) return arguments;
  arguments.recurrent_bias =
      options_.use_bias
          ? BiasRow(1)
          : ZerosLike(Squeeze(Slice(arguments.kernel, {0, 0}, {1, -1}), {0}));
  return arguments;
}

LayerPtr GRU(int64_t units, const GRUOptions& options) {
  return std::make_shared<GRULayer>(units, options);
}

}  // namespace muster
