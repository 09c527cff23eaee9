#include "common/learn/nn/recurrent/recurrent.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/forget_bias.h"

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
                      options.kernel_regularizer, options.kernel_constraint);
  visitor.VisitWeight("recurrent", options.recurrent_initializer,
                      options.recurrent_regularizer,
                      options.recurrent_constraint);
  visitor.VisitWeight("bias", options.bias_initializer,
                      options.bias_regularizer, options.bias_constraint);
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

template <typename Base>
void SimpleRNNOf<Base>::VisitConfig(ConfigVisitor& visitor) {
  Base::VisitConfig(visitor);
  VisitCell(visitor, options_);
}

template <typename Base>
void SimpleRNNOf<Base>::Build(const Shape& input) {
  const int64_t units = AtLeastZero(this->units());
  kernel_ =
      this->AddWeight(Base::WeightName("simple_rnn_cell", "kernel"),
                      {Features(input), units}, options_.kernel_initializer,
                      {.regularizer = options_.kernel_regularizer,
                       .constraint = options_.kernel_constraint});
  recurrent_kernel_ =
      this->AddWeight(Base::WeightName("simple_rnn_cell", "recurrent_kernel"),
                      {units, units}, options_.recurrent_initializer,
                      {.regularizer = options_.recurrent_regularizer,
                       .constraint = options_.recurrent_constraint});
  if (options_.use_bias) {
    bias_ = this->AddWeight(Base::WeightName("simple_rnn_cell", "bias"),
                            {units}, options_.bias_initializer,
                            {.regularizer = options_.bias_regularizer,
                             .constraint = options_.bias_constraint});
  }
}

template <typename Base>
Value SimpleRNNOf<Base>::Project(Value x) {
  const Value y = MatMul(x, kernel_);
  return options_.use_bias ? y + bias_ : y;
}

template <typename Base>
RecurrenceArguments SimpleRNNOf<Base>::Cell() {
  return Recurrent("simple_rnn", options_.activation, Activation::kSigmoid,
                   recurrent_kernel_);
}

template class SimpleRNNOf<RecurrentLayer>;
template class SimpleRNNOf<UnitCell>;

LayerPtr SimpleRNN(int64_t units, const SimpleRNNOptions& options) {
  return std::make_shared<SimpleRNNLayer>(units, options);
}

LayerPtr SimpleRNNCell(int64_t units, const SimpleRNNOptions& options) {
  return std::make_shared<SimpleRNNCellLayer>(units, options);
}

template <typename Base>
void LSTMOf<Base>::VisitConfig(ConfigVisitor& visitor) {
  Base::VisitConfig(visitor);
  VisitCell(visitor, options_);
  visitor.Visit("recurrent_activation", options_.recurrent_activation);
  visitor.Visit("unit_forget_bias", options_.unit_forget_bias);
}

template <typename Base>
void LSTMOf<Base>::Build(const Shape& input) {
  const int64_t units = AtLeastZero(this->units());
  kernel_ =
      this->AddWeight(Base::WeightName("lstm_cell", "kernel"),
                      {Features(input), 4 * units}, options_.kernel_initializer,
                      {.regularizer = options_.kernel_regularizer,
                       .constraint = options_.kernel_constraint});
  recurrent_kernel_ =
      this->AddWeight(Base::WeightName("lstm_cell", "recurrent_kernel"),
                      {units, 4 * units}, options_.recurrent_initializer,
                      {.regularizer = options_.recurrent_regularizer,
                       .constraint = options_.recurrent_constraint});
  if (options_.use_bias) {
    bias_ = this->AddWeight(Base::WeightName("lstm_cell", "bias"), {4 * units},
                            BiasInitializer(),
                            {.regularizer = options_.bias_regularizer,
                             .constraint = options_.bias_constraint});
  }
}

template <typename Base>
Initializer LSTMOf<Base>::BiasInitializer() const {
  if (!options_.unit_forget_bias) return options_.bias_initializer;
  return internal::ForgetBias(options_.bias_initializer,
                              AtLeastZero(this->units()));
}

template <typename Base>
Value LSTMOf<Base>::Project(Value x) {
  const Value y = MatMul(x, kernel_);
  return options_.use_bias ? y + bias_ : y;
}

template <typename Base>
RecurrenceArguments LSTMOf<Base>::Cell() {
  return Recurrent("lstm", options_.activation, options_.recurrent_activation,
                   recurrent_kernel_);
}

template class LSTMOf<RecurrentLayer>;
template class LSTMOf<UnitCell>;

LayerPtr LSTM(int64_t units, const LSTMOptions& options) {
  return std::make_shared<LSTMLayer>(units, options);
}

LayerPtr LSTMCell(int64_t units, const LSTMOptions& options) {
  return std::make_shared<LSTMCellLayer>(units, options);
}

template <typename Base>
void GRUOf<Base>::VisitConfig(ConfigVisitor& visitor) {
  Base::VisitConfig(visitor);
  VisitCell(visitor, options_);
  visitor.Visit("recurrent_activation", options_.recurrent_activation);
  visitor.Visit("reset_after", options_.reset_after);
}

template <typename Base>
void GRUOf<Base>::Build(const Shape& input) {
  const int64_t units = AtLeastZero(this->units());
  kernel_ =
      this->AddWeight(Base::WeightName("gru_cell", "kernel"),
                      {Features(input), 3 * units}, options_.kernel_initializer,
                      {.regularizer = options_.kernel_regularizer,
                       .constraint = options_.kernel_constraint});
  recurrent_kernel_ =
      this->AddWeight(Base::WeightName("gru_cell", "recurrent_kernel"),
                      {units, 3 * units}, options_.recurrent_initializer,
                      {.regularizer = options_.recurrent_regularizer,
                       .constraint = options_.recurrent_constraint});
  if (options_.use_bias) {
    const Shape shape =
        options_.reset_after ? Shape{2, 3 * units} : Shape{3 * units};
    bias_ = this->AddWeight(Base::WeightName("gru_cell", "bias"), shape,
                            options_.bias_initializer,
                            {.regularizer = options_.bias_regularizer,
                             .constraint = options_.bias_constraint});
  }
}

template <typename Base>
Value GRUOf<Base>::Project(Value x) {
  const Value y = MatMul(x, kernel_);
  if (!options_.use_bias) return y;
  return y + (options_.reset_after ? BiasRow(0) : Value(bias_));
}

template <typename Base>
Value GRUOf<Base>::BiasRow(int64_t row) {
  return Squeeze(Slice(bias_, {row, 0}, {1, -1}), {0});
}

template <typename Base>
RecurrenceArguments GRUOf<Base>::Cell() {
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

template class GRUOf<RecurrentLayer>;
template class GRUOf<UnitCell>;

LayerPtr GRU(int64_t units, const GRUOptions& options) {
  return std::make_shared<GRULayer>(units, options);
}

LayerPtr GRUCell(int64_t units, const GRUOptions& options) {
  return std::make_shared<GRUCellLayer>(units, options);
}

}  // namespace muster
