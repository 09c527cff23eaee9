#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/applications/mobilenet_v2.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/drawn_values.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

constexpr uint32_t kFirstOfFourthBlock = 45;

Tensor InitialValue(const Weight& weight, uint32_t key) {
  const std::string& name = weight.name();
  const std::string kind = name.substr(name.rfind('/') + 1);
  const bool keeps_off_kinks =
      key >= kFirstOfFourthBlock && name.find("project") == std::string::npos;
  const Shape& shape = weight.handle().type.shape;
  double offset = 0;
  double scale = 0.1;
  if (kind == "kernel") {
    const bool is_depthwise = name.find("depthwise") != std::string::npos;
    const int end = is_depthwise ? 2 : shape.rank() - 1;
    scale =
        std::sqrt(6.0 / static_cast<double>(shape.ElementCountInRange(0, end)));
  } else if (kind == "gamma" && keeps_off_kinks) {
    offset = 0.4;
    scale = 0.2;
  } else if (kind == "beta" && keeps_off_kinks) {
    offset = 3;
  } else if (kind == "gamma" || kind == "moving_variance") {
    offset = 1;
    scale = 0.5;
  }
  return DrawnTensor(key, shape, offset, scale);
}

Model NarrowModel() {
  return applications::MobileNetV2(
      {.input_shape = {64, 96, 3},
       .alpha = 0.35,
       .classes = 10,
       .classifier_activation = Activation::kLinear});
}

class MobileNetV2GoldenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(model_.Compile({
        .optimizer = Sgd({.learning_rate = 0.05}),
        .loss = SparseCategoricalCrossentropy({.from_logits = true}),
    }));
    for (const Weight& weight : model_.weights()) {
      initial_.push_back(
          InitialValue(weight, static_cast<uint32_t>(initial_.size())));
    }
    ASSERT_OK(model_.SetWeights(initial_));
  }

  const GoldenCase golden_ = ReadGoldenCases("mobilenet_v2.json").front();
  Model model_ = NarrowModel();
  std::vector<Tensor> initial_;
  const Dataset batch_ =
      Dataset::FromTensorSlices({DrawnTensor(kDrawnImages, {2, 64, 96, 3}),
                                 Tensor::FromValues<int32_t>({2}, {0, 1})})
          .Batch(2);
};

TEST_F(MobileNetV2GoldenTest, HasTheWeightsOfKeras) {
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> shapes;
  for (const Weight& weight : model_.weights()) {
    names.push_back(weight.name());
    const auto dims = weight.handle().type.shape.dims();
    shapes.emplace_back(dims.begin(), dims.end());
  }
  EXPECT_EQ(
      names,
      golden_.json.at("outputs").at("names").get<std::vector<std::string>>());
  EXPECT_EQ(shapes, golden_.json.at("outputs")
                        .at("shapes")
                        .get<std::vector<std::vector<int64_t>>>());
}

TEST_F(MobileNetV2GoldenTest, PredictionsMatchKeras) {
  ASSERT_OK_AND_ASSIGN(const Tensor logits, model_.Predict(batch_));
  EXPECT_EQ(DescribeDifference(logits, golden_.outputs.at("logits"), 1e-4), "");
}

TEST_F(MobileNetV2GoldenTest, ATrainingStepMatchesKeras) {
  ASSERT_OK_AND_ASSIGN(const History history,
                       model_.Fit(batch_, {.verbose = Verbosity::kSilent}));
  EXPECT_NEAR(history.history.at("loss")[0],
              golden_.outputs.at("loss").scalar<float>(), 1e-4);

  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after, model_.GetWeights());
  const auto norms = golden_.outputs.at("change_norm").flat<float>();
  const auto projections =
      golden_.outputs.at("change_projections").flat<float>();
  for (size_t k = 0; k < after.size(); ++k) {
    double square = 0;
    double sums[2] = {0, 0};
    for (int64_t i = 0; i < after[k].element_count(); ++i) {
      const double change =
          after[k].flat<float>()[i] - initial_[k].flat<float>()[i];
      square += change * change;
      for (uint32_t j = 0; j < 2; ++j) {
        const uint32_t key = (2 + j) * 1000 + static_cast<uint32_t>(k);
        sums[j] += change * Drawn(key, i);
      }
    }
    // Relative to the norm of the change. The difference between Keras in
    // float32 and in float64 is of this order: 1.4e-3 where most changes cancel
    // out, otherwise 2e-4.
    const double tolerance = 3e-3 * norms[k] + 1e-5;
    SCOPED_TRACE(model_.weights()[k].name());
    EXPECT_NEAR(std::sqrt(square), norms[k], tolerance);
    EXPECT_NEAR(sums[0], projections[2 * k], tolerance);
    EXPECT_NEAR(sums[1], projections[2 * k + 1], tolerance);
  }
}

}  // namespace
}  // namespace muster
