#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

// Records the running mean of the loss after each step.
class LossRecorder final : public Callback {
 public:
  absl::Status OnTrainBatchEnd(Model&, int64_t, const Logs& logs) override {
    means.push_back(logs.at("loss"));
    return absl::OkStatus();
  }
  std::vector<double> means;
};

// Paths in Keras begin with the name of the model.
std::string KerasPath(const Weight& weight) {
  return "sequential/" + weight.name();
}

TEST(MlpGoldenTest, TenStepsOfAdamMatchKeras) {
  const std::vector<GoldenCase> cases = ReadGoldenCases("mlp.json");
  const GoldenCase& golden = cases.front();
  Model model = Sequential({
      Dense(8, {.activation = Activation::kRelu, .name = "dense_0"}),
      Dense(3, {.name = "dense_1"}),
  });
  ASSERT_OK(model.Compile({
      .optimizer = Adam({.learning_rate = 0.02}),
      .loss = SparseCategoricalCrossentropy({.from_logits = true}),
  }));
  ASSERT_OK(model.Build({DType::kFloat32, {Shape::kUnknown, 4}}));
  std::vector<Tensor> weights;
  for (const Weight& weight : model.weights()) {
    weights.push_back(golden.inputs.at(KerasPath(weight)));
  }
  ASSERT_OK(model.SetWeights(weights));

  // Each element of the golden data is a batch.
  const Dataset batches =
      Dataset::FromTensorSlices({golden.inputs.at("x"), golden.inputs.at("y")});
  LossRecorder recorder;
  ASSERT_OK(model.Fit(
      batches, {.verbose = Verbosity::kSilent, .callbacks = {&recorder}}));

  const Tensor& losses = golden.outputs.at("loss");
  ASSERT_EQ(recorder.means.size(), static_cast<size_t>(losses.element_count()));
  double sum = 0;
  for (int64_t i = 0; i < losses.element_count(); ++i) {
    sum += losses.flat<float>()[i];
    EXPECT_NEAR(recorder.means[i], sum / static_cast<double>(i + 1), 2e-6)
        << "step " << i;
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after, model.GetWeights());
  for (size_t i = 0; i < after.size(); ++i) {
    const std::string name = KerasPath(model.weights()[i]);
    EXPECT_EQ(DescribeDifference(after[i], golden.outputs.at(name), 1e-5), "")
        << name;
  }
}

}  // namespace
}  // namespace muster
