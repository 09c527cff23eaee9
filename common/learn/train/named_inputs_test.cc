#include "common/learn/train/named_inputs.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/adapt.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kCount = 12;

// float32[kCount,1] with values factor * (i % period).
Tensor Column(float factor, int64_t period) {
  Tensor column(DType::kFloat32, {kCount, 1});
  for (int64_t i = 0; i < kCount; ++i) {
    column.mutable_flat<float>()[i] = factor * static_cast<float>(i % period);
  }
  return column;
}

Tensor Label() {
  Tensor y = Column(0, 1);
  const Tensor a = Column(0.25, 4);
  const Tensor b = Column(0.5, 3);
  for (int64_t i = 0; i < kCount; ++i) {
    y.mutable_flat<float>()[i] = 2 * a.flat<float>()[i] - b.flat<float>()[i];
  }
  return y;
}

// {"b", label, "a"}: not in the order of the model.
Dataset Table() {
  return Dataset::FromTensorSlices(
      {{"b", Column(0.5, 3)}, {"", Label()}, {"a", Column(0.25, 4)}});
}

// of_a * a + of_b * b; the inputs are {"a", "b"}.
LayerPtr SumOfTwo() {
  const LayerOutput a = Input({1}, {.name = "a"});
  const LayerOutput b = Input({1}, {.name = "b"});
  return Functional(LayerOutputs{a, b},
                    Add()({Dense(1, {.use_bias = false, .name = "of_a"})(a),
                           Dense(1, {.use_bias = false, .name = "of_b"})(b)}));
}

absl::Status Compile(Model& model, double learning_rate = 0.5) {
  return model.Compile({.optimizer = Sgd({.learning_rate = learning_rate}),
                        .loss = MeanSquaredError(),
                        .seed = 1});
}

constexpr Verbosity kSilent = Verbosity::kSilent;

TEST(NamedInputsTest, FitEvaluateAndPredictFeedByName) {
  Model model(SumOfTwo());
  ASSERT_OK(Compile(model));
  ASSERT_OK_AND_ASSIGN(
      const History history,
      model.Fit(Table().Batch(4),
                {.epochs = 150,
                 .validation_data = Table().Select({"a", "b"}).Batch(4),
                 .verbose = kSilent}));
  EXPECT_LT(history.history.at("loss").back(), 1e-6);
  EXPECT_LT(history.history.at("val_loss").back(), 1e-6);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  EXPECT_THAT(weights[0].flat<float>(), ElementsAre(FloatNear(2, 1e-2)));
  EXPECT_THAT(weights[1].flat<float>(), ElementsAre(FloatNear(-1, 1e-2)));

  ASSERT_OK_AND_ASSIGN(const Logs logs,
                       model.Evaluate(Table().Batch(5), {.verbose = kSilent}));
  EXPECT_LT(logs.at("loss"), 1e-6);
  const Dataset inputs =
      Dataset::FromTensorSlices({{"b", Column(10, 3)}, {"a", Column(0, 1)}});
  ASSERT_OK_AND_ASSIGN(const Tensor predictions,
                       model.Predict(inputs.Batch(5)));
  EXPECT_THAT(
      predictions.flat<float>().subspan(0, 3),
      ElementsAre(FloatNear(0, 0.1), FloatNear(-10, 0.1), FloatNear(-20, 0.1)));
}

TEST(NamedInputsTest, PositionsCountWithoutNames) {
  const LayerPtr layer = SumOfTwo();
  const Dataset table = Table().WithNames({});
  ASSERT_OK_AND_ASSIGN(const Dataset ordered, InOrderOfModel(*layer, table));
  EXPECT_EQ(ordered.node(), table.node());
  // The same holds for a model whose inputs have no names.
  const LayerPtr unnamed = Sequential({Dense(1)});
  ASSERT_OK_AND_ASSIGN(const Dataset same, InOrderOfModel(*unnamed, Table()));
  EXPECT_THAT(same.component_names(), ElementsAre("b", "", "a"));
}

TEST(NamedInputsTest, DataInTheOrderOfTheModelStayAsTheyAre) {
  const Dataset table = Table().Select({"a", "b"});
  ASSERT_OK_AND_ASSIGN(const Dataset ordered,
                       InOrderOfModel(*SumOfTwo(), table));
  EXPECT_EQ(ordered.node(), table.node());
}

TEST(NamedInputsTest, MissingAndUnknownComponentsAreNamed) {
  Model model(SumOfTwo());
  ASSERT_OK(Compile(model));
  const Dataset batches = Table().Rename({{"b", "c"}}).Batch(4);
  const auto is_refused = StatusIs(
      kInvalid, AllOf(HasSubstr("components \"c\", \"a\" and 1 without a name"),
                      HasSubstr("the model the inputs \"a\", \"b\""),
                      HasSubstr("it lacks the input \"b\""),
                      HasSubstr("\"c\" is neither an input nor an output"),
                      HasSubstr("Rename()")));
  EXPECT_THAT(model.Fit(batches, {.verbose = kSilent}), is_refused);
  EXPECT_THAT(model.Evaluate(batches, {.verbose = kSilent}), is_refused);
  EXPECT_THAT(model.Predict(batches), is_refused);
  EXPECT_THAT(model.Fit(Table().Batch(4),
                        {.validation_data = batches, .verbose = kSilent}),
              is_refused);
  // An additional component is an error, too.
  const Dataset more =
      Dataset::Zip({Table(), Dataset::Range(kCount).WithNames({"id"})});
  EXPECT_THAT(model.Fit(more.Batch(4), {.verbose = kSilent}),
              StatusIs(kInvalid, HasSubstr("\"id\" is neither")));
  EXPECT_OK(model.Fit(more.Drop({"id"}).Batch(4), {.verbose = kSilent}));
}

// Two outputs of one input.
LayerPtr TwoOutputs() {
  const LayerOutput x = Input({1}, {.name = "x"});
  return Functional(
      {x}, {Dense(1, {.name = "up"})(x), Dense(1, {.name = "down"})(x)});
}

TEST(NamedInputsTest, LabelsMayHaveTheNamesOfTheirOutputs) {
  const LayerPtr layer = TwoOutputs();
  const Dataset data = Dataset::FromTensorSlices({{"down", Column(-1, 3)},
                                                  {"", Column(0, 1)},
                                                  {"x", Column(1, 3)},
                                                  {"up", Column(1, 3)}});
  ASSERT_OK_AND_ASSIGN(const Dataset ordered, InOrderOfModel(*layer, data));
  EXPECT_THAT(ordered.component_names(), ElementsAre("x", "up", "down", ""));
  EXPECT_THAT(
      InOrderOfModel(*layer, data.Rename({{"up", ""}})),
      StatusIs(kInvalid, HasSubstr("labels for the output \"down\" by name, "
                                   "and none for \"up\"")));
  ASSERT_OK_AND_ASSIGN(
      const Dataset by_position,
      InOrderOfModel(*layer, data.Rename({{"up", ""}, {"down", ""}})));
  EXPECT_THAT(by_position.component_names(), ElementsAre("x", "", "", ""));
}

TEST(NamedInputsTest, InputsOfSequentialModelsHaveNames) {
  const LayerPtr layer = Sequential({Input({1}, {.name = "a"}), Dense(1)});
  ASSERT_OK_AND_ASSIGN(const Dataset ordered,
                       InOrderOfModel(*layer, Table().Drop({"b"})));
  EXPECT_THAT(ordered.component_names(), ElementsAre("a", ""));
  EXPECT_THAT(InOrderOfModel(*layer, Table()),
              StatusIs(kInvalid, HasSubstr("\"b\" is neither")));
}

TEST(NamedInputsTest, AdaptFeedsByName) {
  const LayerOutput a = Input({1}, {.name = "a"});
  const LayerOutput b = Input({1}, {.name = "b"});
  const LayerPtr layer =
      Functional(LayerOutputs{a, b}, Add()({a, Normalization()(b)}));
  ASSERT_OK(Adapt(layer, Table().Batch(4)));
  Model model(layer);
  ASSERT_OK(Compile(model));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> state, model.GetWeights());
  ASSERT_FALSE(state.empty());
  // The mean of 0, 0.5 and 1.
  EXPECT_THAT(state[0].flat<float>(), ElementsAre(FloatNear(0.5, 1e-5)));
}

}  // namespace
}  // namespace muster
