#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/applications/efficientnet.h"
#include "common/learn/nn/applications/image_classifier.h"
#include "common/learn/nn/applications/mobilenet.h"
#include "common/learn/nn/applications/resnet50.h"
#include "common/learn/nn/applications/vgg16.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/drawn_values.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

Shape InputShape(const GoldenCase& golden) {
  return Shape(golden.config.at("input_shape").get<std::vector<int64_t>>());
}

Model MakeModel(const GoldenCase& golden) {
  const applications::ImageClassifierOptions options = {
      .input_shape = InputShape(golden),
      .classes = golden.config.at("classes").get<int64_t>(),
      .classifier_activation = Activation::kLinear};
  if (golden.name == "ResNet50") return applications::ResNet50(options);
  if (golden.name == "VGG16") return applications::VGG16(options);
  if (golden.name == "EfficientNetB0") {
    return applications::EfficientNetB0(options);
  }
  MUSTER_CHECK(golden.name == "MobileNet");
  return applications::MobileNet(
      {.input_shape = options.input_shape,
       .classes = options.classes,
       .classifier_activation = options.classifier_activation});
}

Element Images(const GoldenCase& golden) {
  const Shape shape = InputShape(golden);
  const bool is_byte = golden.name == "EfficientNetB0";
  return {DrawnTensor(kDrawnImages,
                      {2, shape.dim(0), shape.dim(1), shape.dim(2)},
                      is_byte ? 127.5 : 0, is_byte ? 127.5 : 1)};
}

// Equivalent to _initial() in cases/applications.py.
Tensor InitialValue(const Weight& weight, uint32_t key) {
  const std::string& name = weight.name();
  const std::string kind = name.substr(name.rfind('/') + 1);
  const Shape& shape = weight.handle().type.shape;
  if (kind == "kernel") {
    const bool is_depthwise = name.find("_dw") != std::string::npos;
    const auto fan_in =
        shape.ElementCountInRange(0, is_depthwise ? 2 : shape.rank() - 1);
    return DrawnTensor(key, shape, 0,
                       std::sqrt(6.0 / static_cast<double>(fan_in)));
  }
  if (name.ends_with("project_bn/gamma")) {
    return DrawnTensor(key, shape, 1.25, 0.5);
  }
  if (kind == "gamma" || kind == "moving_variance" || kind == "variance") {
    return DrawnTensor(key, shape, 1, 0.5);
  }
  return DrawnTensor(key, shape, 0, 0.1);
}

class ApplicationsGoldenTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(ApplicationsGoldenTest, HasTheWeightsOfKeras) {
  Model model = MakeModel(GetParam());
  ASSERT_OK(model.Compile({}));
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> shapes;
  for (const Weight& weight : model.weights()) {
    names.push_back(weight.name());
    const auto dims = weight.handle().type.shape.dims();
    shapes.emplace_back(dims.begin(), dims.end());
  }
  const auto& expected = GetParam().json.at("outputs");
  EXPECT_EQ(names, expected.at("names").get<std::vector<std::string>>());
  EXPECT_EQ(shapes,
            expected.at("shapes").get<std::vector<std::vector<int64_t>>>());
}

TEST_P(ApplicationsGoldenTest, PredictsWhatKerasPredicts) {
  Model model = MakeModel(GetParam());
  ASSERT_OK(model.Compile({}));
  std::vector<Tensor> values;
  for (const Weight& weight : model.weights()) {
    values.push_back(
        InitialValue(weight, static_cast<uint32_t>(values.size())));
  }
  ASSERT_OK(model.SetWeights(values));
  ASSERT_OK_AND_ASSIGN(const Tensor logits, model.Predict(Images(GetParam())));
  EXPECT_EQ(DescribeDifference(logits, GetParam().outputs.at("logits"), 1e-4),
            "");
}

INSTANTIATE_TEST_SUITE_P(
    Golden, ApplicationsGoldenTest,
    ::testing::ValuesIn(ReadGoldenCases("applications.json")),
    [](const auto& test) { return test.param.name; });

TEST(ApplicationsFilesTest, ReadsTheWeightsThatKerasWrites) {
  const char* const python = std::getenv("MUSTER_KERAS_PYTHON");
  if (python == nullptr || *python == '\0') {
    GTEST_SKIP() << "MUSTER_KERAS_PYTHON does not name a Python with Keras";
  }
  const std::string folder = testing::TempDir();
  const std::string command = absl::StrCat(
      python, " -B tests/golden/write_application_weights.py ", folder);
  ASSERT_EQ(std::system(command.c_str()), 0);
  for (const GoldenCase& golden : ReadGoldenCases("applications.json")) {
    SCOPED_TRACE(golden.name);
    Model model = MakeModel(golden);
    ASSERT_OK(model.Compile({}));
    ASSERT_OK(model.LoadWeights(
        absl::StrCat(folder, "/", golden.name, ".weights.h5")));
    ASSERT_OK_AND_ASSIGN(const Tensor logits, model.Predict(Images(golden)));
    EXPECT_EQ(DescribeDifference(logits, golden.outputs.at("logits"), 1e-4),
              "");
  }
}

TEST(ApplicationsFilesTest, RefusesWeightsThatDoNotFit) {
  const std::string path = testing::TempDir() + "/ten_classes.weights.h5";
  const auto make = [](int64_t classes) {
    return Model(applications::MobileNet(
        {.input_shape = {32, 32, 3}, .alpha = 0.25, .classes = classes}));
  };
  Model ten = make(10);
  ASSERT_OK(ten.Compile({}));
  ASSERT_OK(ten.SaveWeights(path));
  Model five = make(5);
  ASSERT_OK(five.Compile({}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> before, five.GetWeights());
  EXPECT_THAT(five.LoadWeights(path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is float32[1,1,256,10]; conv_preds/kernel of "
                                 "this model is float32[1,1,256,5]")));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after, five.GetWeights());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(BitwiseEqual(after[i], before[i]));
  }
}

// Keras saves models with random weights, one after the other.
TEST(ApplicationsFilesTest, LoadsTheModelsThatKerasSaves) {
  const char* const python = std::getenv("MUSTER_KERAS_PYTHON");
  if (python == nullptr || *python == '\0') {
    GTEST_SKIP() << "MUSTER_KERAS_PYTHON does not name a Python with Keras";
  }
  const std::string folder = testing::TempDir();
  const std::string command = absl::StrCat(
      python, " -B tests/golden/write_application_models.py ", folder);
  ASSERT_EQ(std::system(command.c_str()), 0);
  for (const GoldenCase& golden :
       ReadGoldenCasesAt(absl::StrCat(folder, "/models.json"))) {
    SCOPED_TRACE(golden.name);
    absl::StatusOr<Model> model =
        LoadModel(absl::StrCat(folder, "/", golden.name, ".keras"));
    EXPECT_OK(model.status());
    if (!model.ok()) continue;
    const Shape shape = InputShape(golden);
    const Tensor images =
        DrawnTensor(kDrawnImages, {2, shape.dim(0), shape.dim(1), shape.dim(2)},
                    127.5, 127.5);
    const absl::StatusOr<Tensor> logits = model->Predict({images});
    EXPECT_OK(logits.status());
    if (!logits.ok()) continue;
    EXPECT_EQ(DescribeDifference(*logits, golden.outputs.at("logits"), 1e-4),
              "");
  }
}

}  // namespace
}  // namespace muster
