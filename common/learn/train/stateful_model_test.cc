#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

LayerPtr Stateful(int64_t batch_size) {
  return Sequential({Input({3, 2}, {.batch_size = batch_size}),
                     GRU(2, {.sequence = {.stateful = true}, .name = "memory"}),
                     Dense(1)});
}

Element Examples(int64_t count) {
  return {Tensor::Full(DType::kFloat32, {count, 3, 2}, 0.5)};
}

// The golden test compares numbers with Keras.
TEST(StatefulModelTest, StatesAreNoWeights) {
  Model model = Stateful(4);
  ASSERT_OK(model.Compile({}));
  EXPECT_EQ(model.weights().size(), 5u);
  const std::vector<Weight> states = model.layer()->states();
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].name(), "memory/rnn_state");
  EXPECT_EQ(states[0].handle().type, (TensorType{DType::kFloat32, {4, 2}}));
  EXPECT_THAT(Sequential({GRU(2)})->states(), IsEmpty());
}

TEST(StatefulModelTest, BatchesHaveTheSizeOfTheInput) {
  Model model = Stateful(4);
  ASSERT_OK(model.Compile({}));
  ASSERT_OK(model.PredictOnBatch(Examples(4)).status());
  EXPECT_THAT(
      model.PredictOnBatch(Examples(3)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("batch_size")));
  // 8 sequences of 3 steps have as many elements as 4 of 6.
  Model any_time =
      Sequential({Input({Shape::kUnknown, 2}, {.batch_size = 4}),
                  GRU(2, {.sequence = {.stateful = true}}), Dense(1)});
  ASSERT_OK(any_time.Compile({}));
  ASSERT_OK(any_time.PredictOnBatch(Examples(4)).status());
  EXPECT_THAT(any_time.PredictOnBatch(Examples(8)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has batches of 4 examples")));
}

TEST(StatefulModelTest, NeedsABatchSize) {
  Model model = Stateful(Shape::kUnknown);
  EXPECT_THAT(model.Compile({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("give Input() a batch_size")));
}

TEST(StatefulModelTest, ResetNeedsStates) {
  Model model = Sequential({GRU(2, {.sequence = {.stateful = true}})});
  ASSERT_OK(model.Compile({}));
  EXPECT_THAT(model.ResetStates(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("has no weights yet")));
}

TEST(StatefulModelTest, SeveralReplicasRefuseIt) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<MirroredStrategy> strategy,
      MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"}}));
  Model model = Stateful(4);
  EXPECT_THAT(
      model.Compile(*strategy, {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("memory/rnn_state is carried from batch to batch")));
}

}  // namespace
}  // namespace muster
