#include "common/learn/train/predictor.h"

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/barrier.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model TwoOutputs() {
  const LayerOutput x = Input({3});
  const LayerOutput y =
      Dropout(0.5)(BatchNormalization()(Dense(4, {.name = "hidden"})(x)));
  return Model({x}, {Dense(2)(y), Dense(1)(y)});
}

Element Batch(int row_count, float first) {
  Tensor x(DType::kFloat32, {row_count, 3});
  float next = first;
  for (float& value : x.mutable_flat<float>()) value = next += 0.25f;
  return {x};
}

void ExpectSame(const std::vector<Tensor>& got,
                const std::vector<Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(BitwiseEqual(got[i], expected[i]));
  }
}

TEST(PredictorTest, PredictsWhatTheModelPredicts) {
  Model model = TwoOutputs();
  ASSERT_OK(model.Compile({.seed = 1}));
  ASSERT_OK_AND_ASSIGN(const auto predictor, Predictor::Of(model));
  EXPECT_THAT(predictor->input_types(),
              ElementsAre(TensorType{DType::kFloat32, {Shape::kUnknown, 3}}));
  for (const int row_count : {1, 5, 1}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                         model.PredictOnBatch(Batch(row_count, 0)));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                         predictor->Predict(Batch(row_count, 0)));
    ExpectSame(got, expected);
  }
}

TEST(PredictorTest, KeepsItsWeights) {
  Model model = TwoOutputs();
  ASSERT_OK(model.Compile({.seed = 1}));
  ASSERT_OK_AND_ASSIGN(const auto predictor, Predictor::Of(model));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> before,
                       predictor->Predict(Batch(2, 0)));
  ASSERT_OK_AND_ASSIGN(std::vector<Tensor> weights, model.GetWeights());
  for (Tensor& weight : weights) {
    weight = Tensor::Full(weight.dtype(), weight.shape(), 3);
  }
  ASSERT_OK(model.SetWeights(weights));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after,
                       predictor->Predict(Batch(2, 0)));
  ExpectSame(after, before);
}

TEST(PredictorTest, LoadsFilesOfKeras) {
  const std::string path = testing::TempDir() + "predictor.keras";
  Model model = TwoOutputs();
  ASSERT_OK(model.Compile({.seed = 1}));
  ASSERT_OK(model.Save(path));
  ASSERT_OK_AND_ASSIGN(const auto predictor, Predictor::Load(path));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                       model.PredictOnBatch(Batch(2, 0)));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                       predictor->Predict(Batch(2, 0)));
  ExpectSame(got, expected);
}

// Uses more threads than executables are kept, and batches of several sizes.
TEST(PredictorTest, ThreadsPredictAtTheSameTime) {
  constexpr int kThreadCount = 6;
  Model model = TwoOutputs();
  ASSERT_OK(model.Compile({.seed = 1}));
  ASSERT_OK_AND_ASSIGN(const auto predictor,
                       Predictor::Of(model, {.kept_count = 2}));
  std::vector<std::vector<Tensor>> expected;
  for (int i = 0; i < kThreadCount; ++i) {
    ASSERT_OK_AND_ASSIGN(expected.emplace_back(),
                         model.PredictOnBatch(Batch(1 + i % 3, i)));
  }
  absl::Barrier* const start = new absl::Barrier(kThreadCount);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreadCount; ++i) {
    threads.emplace_back([&, i] {
      if (start->Block()) delete start;
      for (int round = 0; round < 50; ++round) {
        const absl::StatusOr<std::vector<Tensor>> got =
            predictor->Predict(Batch(1 + i % 3, i));
        ASSERT_OK(got.status());
        ExpectSame(*got, expected[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PredictorTest, MistakesAreErrors) {
  Model model = TwoOutputs();
  EXPECT_THAT(Predictor::Of(model).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(model.Compile({}));
  EXPECT_THAT(Predictor::Of(model, {.thread_count = 0}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("thread_count is 0")));
  ASSERT_OK_AND_ASSIGN(const auto predictor, Predictor::Of(model));
  EXPECT_THAT(
      predictor->Predict({Tensor::Zeros(DType::kFloat32, {2, 4})}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(predictor->Predict({}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // It can still be used after an error.
  EXPECT_OK(predictor->Predict(Batch(2, 0)).status());

  Model without_input = Sequential({Dense(2)});
  ASSERT_OK(without_input.Compile({}));
  EXPECT_THAT(Predictor::Of(without_input).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not begin with Input()")));
  Model stateful = Sequential({Input({3, 2}, {.batch_size = 4}),
                               GRU(2, {.sequence = {.stateful = true}})});
  ASSERT_OK(stateful.Compile({}));
  EXPECT_THAT(
      Predictor::Of(stateful).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("have no order")));
}

}  // namespace
}  // namespace muster
