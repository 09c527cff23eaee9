#include "common/learn/nn/recurrent/rnn.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/recurrent/rnn_cell.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// tests/golden compares the layers with Keras.
namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Counts the time steps that are not masked; returns twice the count.
class Counter : public Layer, public RNNCell {
 public:
  int input_count() const override { return 2; }
  int output_count() const override { return 2; }
  std::vector<Shape> StateShapes(const Shape&) const override { return {{1}}; }

 protected:
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext&) override {
    const Value count = inputs[1] + 1.0;
    return {count * 2.0, count};
  }
};

absl::StatusOr<Tensor> Call(const LayerPtr& layer,
                            const std::vector<Tensor>& inputs, int output = 0) {
  layer->SetPath("layer");
  return Evaluate(
      [&](const std::vector<Value>& values) {
        return layer->CallAll(values)[output];
      },
      inputs);
}

std::vector<float> Flat(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

const Tensor& Sequence() {
  static const Tensor& kSequence =
      *new Tensor(Tensor::Zeros(DType::kFloat32, {2, 4, 3}));
  return kSequence;
}

Tensor Mask() {
  return Tensor::FromSpan<bool>(
      {2, 4}, {true, false, true, true, false, false, true, false});
}

TEST(RnnTest, RunsACellOfTheProgramsOwn) {
  EXPECT_THAT(Flat(Call(RNN(MakeLayer<Counter>()), {Sequence()}).value()),
              ElementsAre(8, 8));
  const LayerPtr all = RNN(MakeLayer<Counter>(), {.return_sequences = true});
  EXPECT_THAT(Flat(Call(all, {Sequence()}).value()),
              ElementsAre(2, 4, 6, 8, 2, 4, 6, 8));
  const Tensor initial = Tensor::Full(DType::kFloat32, {2, 1}, 10);
  EXPECT_THAT(Flat(Call(all, {Sequence(), initial}).value()),
              ElementsAre(22, 24, 26, 28, 22, 24, 26, 28));
}

TEST(RnnTest, KeepsOutputAndStatesWhereMasked) {
  const auto layer = [](bool zero) {
    return RNN(MakeLayer<Counter>(), {.return_sequences = true,
                                      .return_state = true,
                                      .zero_output_for_mask = zero});
  };
  EXPECT_THAT(Flat(Call(layer(false), {Sequence(), Mask()}).value()),
              ElementsAre(2, 2, 4, 6, 0, 0, 2, 2));
  EXPECT_THAT(Flat(Call(layer(true), {Sequence(), Mask()}).value()),
              ElementsAre(2, 0, 4, 6, 0, 0, 2, 0));
  EXPECT_THAT(Flat(Call(layer(true), {Sequence(), Mask()}, 1).value()),
              ElementsAre(3, 1));
}

TEST(RnnTest, RunsBackwardsInTheOrderOfSteps) {
  const LayerPtr layer = RNN(MakeLayer<Counter>(),
                             {.return_sequences = true, .go_backwards = true});
  EXPECT_THAT(Flat(Call(layer, {Sequence(), Mask()}).value()),
              ElementsAre(2, 4, 4, 6, 0, 2, 2, 2));
}

TEST(RnnTest, StacksCellsOfAnyKind) {
  const LayerPtr layer =
      RNN(StackedRNNCells({MakeLayer<Counter>(), MakeLayer<Counter>()}),
          {.return_state = true});
  EXPECT_EQ(layer->output_count(), 3);
  EXPECT_THAT(Flat(Call(layer, {Sequence()}, 2).value()), ElementsAre(4, 4));
}

TEST(RnnTest, RejectsWhatIsNoCell) {
  EXPECT_THAT(Call(RNN(Dense(2)), {Sequence()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must be a recurrent cell, got Dense")));
  EXPECT_THAT(Call(RNN(LSTMCell(2)),
                   {Sequence(), Tensor::Zeros(DType::kFloat32, {2, 2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected 2 initial states or none, got 1")));
  EXPECT_THAT(Call(RNN(LSTMCell(2)), {Tensor::Zeros(DType::kFloat32, {2, 3})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected [batch, time, ...]")));
}

}  // namespace
}  // namespace muster
