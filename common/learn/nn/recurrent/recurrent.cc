#include "common/learn/nn/recurrent/recurrent.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

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

Value SimpleRNNLayer::Project(Value rows) {
  const Value y = MatMul(rows, kernel_);
  return options_.use_bias ? y + bias_ : y;
}

void SimpleRNNLayer::ReadWeights() { recurrent_ = recurrent_kernel_; }

RecurrentLayer::States SimpleRNNLayer::Step(Value projected,
                                            const States& states) {
  return {
      Activate(options_.activation, projected + MatMul(states[0], recurrent_))};
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

Value LSTMLayer::Project(Value rows) {
  if (options_.use_bias && options_.unit_forget_bias &&
      !options_.bias_initializer.definition().has_constant()) {
    rows.builder()->ReportError(absl::InvalidArgumentError(
        "LSTM: unit_forget_bias needs a bias_initializer that is a constant"));
    return Value();
  }
  const Value y = MatMul(rows, kernel_);
  return options_.use_bias ? y + bias_ : y;
}

void LSTMLayer::ReadWeights() { recurrent_ = recurrent_kernel_; }

RecurrentLayer::States LSTMLayer::Step(Value projected, const States& states) {
  const std::vector<Value> gates =
      Split(projected + MatMul(states[0], recurrent_),
            std::vector<int64_t>(4, units()), 1);
  const Value input = Activate(options_.recurrent_activation, gates[0]);
  const Value forget = Activate(options_.recurrent_activation, gates[1]);
  const Value candidate = Activate(options_.activation, gates[2]);
  const Value output = Activate(options_.recurrent_activation, gates[3]);
  const Value cell = forget * states[1] + input * candidate;
  return {output * Activate(options_.activation, cell), cell};
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

Value GRULayer::Project(Value rows) {
  const Value y = MatMul(rows, kernel_);
  if (!options_.use_bias) return y;
  if (!options_.reset_after) return y + bias_;
  return y + Squeeze(Slice(bias_, {0, 0}, {1, -1}), {0});
}

void GRULayer::ReadWeights() {
  if (!options_.reset_after) {
    const std::vector<Value> parts =
        Split(recurrent_kernel_, {2 * units(), units()}, 1);
    recurrent_ = parts[0];
    recurrent_candidate_ = parts[1];
    return;
  }
  recurrent_ = recurrent_kernel_;
  if (options_.use_bias) {
    recurrent_bias_ = Squeeze(Slice(bias_, {1, 0}, {1, -1}), {0});
  }
}

RecurrentLayer::States GRULayer::Step(Value projected, const States& states) {
  const Value h = states[0];
  const std::vector<int64_t> gates_and_candidate = {2 * units(), units()};
  const std::vector<Value> from_input =
      Split(projected, gates_and_candidate, 1);
  Value from_state = MatMul(h, recurrent_);
  Value state_candidate;
  if (options_.reset_after) {
    if (options_.use_bias) from_state = from_state + recurrent_bias_;
    const std::vector<Value> parts = Split(from_state, gates_and_candidate, 1);
    from_state = parts[0];
    state_candidate = parts[1];
  }
  const std::vector<Value> gates =
      Split(Activate(options_.recurrent_activation, from_input[0] + from_state),
            {units(), units()}, 1);
  const Value update = gates[0];
  const Value reset = gates[1];
  const Value from_reset = options_.reset_after
                               ? reset * state_candidate
                               : MatMul(reset * h, recurrent_candidate_);
  const Value candidate =
      Activate(options_.activation, from_input[1] + from_reset);
  return {update * h + (1.0 - update) * candidate};
}

LayerPtr GRU(int64_t units, const GRUOptions& options) {
  return std::make_shared<GRULayer>(units, options);
}

}  // namespace muster
