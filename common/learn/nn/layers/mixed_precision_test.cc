#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/attention/attention.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/layer_normalization.h"
#include "common/learn/nn/layers/masking.h"
#include "common/learn/nn/layers/rms_normalization.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Returns the dtype of the layer's output for an input of this type.
DType OutputDType(const LayerPtr& layer, const TensorType& input) {
  GraphBuilder builder(&BuiltinOps(), "test");
  layer->SetPath("layer");
  const Value y = (*layer)(builder.Parameter("x", input), kInference);
  EXPECT_OK(builder.status());
  return y.ok() ? y.dtype() : DType::kInvalid;
}

const TensorType kBatch = {DType::kFloat32, {Shape::kUnknown, 4}};

class MixedPrecisionTest : public ::testing::TestWithParam<DTypePolicy> {};

INSTANTIATE_TEST_SUITE_P(Policies, MixedPrecisionTest,
                         ::testing::Values(kMixedBfloat16Policy,
                                           kMixedFloat16Policy),
                         [](const auto& info) {
                           return DTypePolicyName(info.param);
                         });

TEST_P(MixedPrecisionTest, LayersTakeThePolicyInEffectAtCreation) {
  EXPECT_EQ(OutputDType(Dense(3), kBatch), DType::kFloat32);
  {
    const DTypePolicyScope scope(GetParam());
    EXPECT_EQ(OutputDType(Dense(3), kBatch), GetParam().compute);
    const LayerPtr exact = Dense(3);
    exact->set_dtype_policy(kFloat32Policy);
    EXPECT_EQ(OutputDType(exact, kBatch), DType::kFloat32);
  }
  EXPECT_EQ(OutputDType(Dense(3), kBatch), DType::kFloat32);
}

TEST_P(MixedPrecisionTest, VariablesStayFloat32) {
  const DTypePolicyScope scope(GetParam());
  const LayerPtr layer = Dense(3);
  OutputDType(layer, kBatch);
  for (const Weight& weight : layer->weights()) {
    EXPECT_EQ(weight.handle().type.dtype, DType::kFloat32) << weight.name();
  }
}

TEST_P(MixedPrecisionTest, Float32LayersAcceptTheComputeDtype) {
  const LayerPtr layer = Dense(3);
  EXPECT_EQ(OutputDType(layer, {GetParam().compute, {Shape::kUnknown, 4}}),
            DType::kFloat32);
}

TEST_P(MixedPrecisionTest, ConvertsIntegersToTheComputeDtype) {
  const DTypePolicyScope scope(GetParam());
  EXPECT_EQ(OutputDType(Dense(3), {DType::kUint8, {Shape::kUnknown, 4}}),
            GetParam().compute);
}

TEST_P(MixedPrecisionTest, LookupsReturnTheComputeDtype) {
  const DTypePolicyScope scope(GetParam());
  EXPECT_EQ(OutputDType(Embedding(10, 4), {DType::kInt32, {Shape::kUnknown}}),
            GetParam().compute);
}

// Of the input and the output, which take twice the memory.
TEST_P(MixedPrecisionTest, LayerNormalizationMakesNoFloat32Copies) {
  const DTypePolicyScope scope(GetParam());
  for (const std::vector<int64_t>& axes :
       std::vector<std::vector<int64_t>>{{-1}, {1, 2}}) {
    const LayerPtr layer = LayerNormalization({.axis = axes});
    layer->SetPath("layer");
    GraphBuilder builder(&BuiltinOps(), "test");
    const Shape shape = {Shape::kUnknown, 3, 4};
    const Value x = builder.Parameter("x", {GetParam().compute, shape});
    builder.AddResult((*layer)(x, kTraining));
    ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
    for (const Node& node : graph.nodes) {
      for (const TensorType& type : node.outputs) {
        EXPECT_TRUE(type.dtype != DType::kFloat32 || type.shape != shape)
            << node.name << " is " << type.ToString();
      }
    }
  }
}

TEST_P(MixedPrecisionTest, LayerNormalizationReturnsTheComputeDtype) {
  for (const DTypePolicy& policy : {kFloat32Policy, GetParam()}) {
    const DTypePolicyScope scope(policy);
    for (const std::vector<int64_t>& axes :
         std::vector<std::vector<int64_t>>{{-1}, {1, 2}, {1}}) {
      const LayerPtr layer = LayerNormalization({.axis = axes});
      for (const DType input : {GetParam().compute, DType::kFloat32,
                                DType::kFloat64, DType::kInt32}) {
        EXPECT_EQ(OutputDType(layer, {input, {Shape::kUnknown, 3, 4}}),
                  policy.compute);
      }
    }
  }
}

TEST_P(MixedPrecisionTest, ModelsDoNotCastTheirInputs) {
  const DTypePolicyScope scope(GetParam());
  const LayerPtr first = Dense(3);
  first->set_dtype_policy(kFloat32Policy);
  const LayerPtr model = Sequential({first});
  EXPECT_EQ(OutputDType(model, kBatch), DType::kFloat32);
  EXPECT_EQ(OutputDType(model, {DType::kUint8, {Shape::kUnknown, 4}}),
            DType::kFloat32);
}

// Sums of squares are infinite in float16 where the numbers are not.
TEST(DTypePolicyTest, NormalizationsDoNotOverflowInFloat16) {
  const DTypePolicyScope scope(kMixedFloat16Policy);
  for (const LayerPtr& layer :
       {LayerNormalization({.center = false, .scale = false}),
        RMSNormalization()}) {
    layer->SetPath("layer");
    const InterpretOptions options = {
        .run = {.variables = {
                    {"layer/scale", Tensor::Full(DType::kFloat32, {4}, 1)}}}};
    ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> y,
        EvaluateAll(
            [&](const std::vector<Value>& inputs) {
              return std::vector<Value>{
                  Cast((*layer)(inputs[0], kInference), DType::kFloat32)};
            },
            {Tensor::FromValues<float>({1, 4}, {3000, -3000, 3000, -3000})},
            options));
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR(y[0].flat<float>()[i], i % 2 == 0 ? 1 : -1, 0.01)
          << layer->kind();
    }
  }
}

// -1e9, which other dtypes have for it, would be infinite.
TEST(DTypePolicyTest, MaskedScoresAreFiniteInFloat16) {
  const DTypePolicyScope scope(kMixedFloat16Policy);
  ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Evaluate(
          [&](const std::vector<Value>& inputs) {
            const Value x = (*Masking())(inputs[0], kInference);
            return Cast((*Attention({.use_causal_mask = true}))({x, x}),
                        DType::kFloat32);
          },
          {Tensor::FromValues<float>({1, 2, 2}, {1, 2, 3, 4})}));
  EXPECT_EQ(y.flat<float>()[0], 1);
  EXPECT_EQ(y.flat<float>()[1], 2);
}

// In bfloat16, 256 + 1 is 256, so a mean computed in bfloat16 would be wrong.
TEST(DTypePolicyTest, LayerNormalizationComputesInFloat32) {
  const DTypePolicyScope scope(kMixedBfloat16Policy);
  const LayerPtr layer = LayerNormalization({.center = false, .scale = false});
  layer->SetPath("layer");
  ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Evaluate(
          [&](const std::vector<Value>& inputs) {
            return Cast((*layer)(inputs[0], kInference), DType::kFloat32);
          },
          {Tensor::FromValues<float>({1, 4}, {257, 259, 261, 263})}));
  const std::vector<float> wanted = {-1.3414, -0.4471, 0.4471, 1.3414};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(y.flat<float>()[i], wanted[i], 0.01);
  }
}

TEST(DTypePolicyTest, HasTheNamesOfKeras) {
  EXPECT_EQ(DTypePolicyName(kMixedBfloat16Policy), "mixed_bfloat16");
  ASSERT_OK_AND_ASSIGN(const DTypePolicy policy,
                       ParseDTypePolicy("mixed_bfloat16"));
  EXPECT_EQ(policy, kMixedBfloat16Policy);
  EXPECT_EQ(DTypePolicyName(kMixedFloat16Policy), "mixed_float16");
  EXPECT_THAT(ParseDTypePolicy("mixed_float16"),
              IsOkAndHolds(kMixedFloat16Policy));
  EXPECT_THAT(
      ParseDTypePolicy("float16"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("expected float32, mixed_bfloat16 or mixed_float16")));
}

Tensor RandomTensor(const Shape& shape, double scale, uint64_t key) {
  Tensor tensor(DType::kFloat32, shape);
  RandomStream random(key);
  for (float& element : tensor.mutable_flat<float>()) {
    element = static_cast<float>(
        scale *
        (UnitFloat(static_cast<uint32_t>(random.Next64() >> 32)) * 2 - 1));
  }
  return tensor;
}

// Returns the loss and the gradients of a network with this policy on fixed
// inputs.
std::vector<Tensor> LossAndGradients(const DTypePolicy& policy) {
  const DTypePolicyScope scope(policy);
  const LayerPtr model =
      Sequential({Dense(32, {.activation = Activation::kTanh}),
                  LayerNormalization(), Dense(5)});
  model->SetPath("");
  const InterpretOptions options = {
      .run = {.variables = {
                  {"dense/kernel", RandomTensor({16, 32}, 0.4, 1)},
                  {"dense/bias", RandomTensor({32}, 0.1, 2)},
                  {"layer_normalization/gamma", RandomTensor({32}, 1, 3)},
                  {"layer_normalization/beta", RandomTensor({32}, 0.1, 4)},
                  {"dense_1/kernel", RandomTensor({32, 5}, 0.3, 5)},
                  {"dense_1/bias", RandomTensor({5}, 0.1, 6)}}}};
  const auto results = EvaluateAll(
      [&](const std::vector<Value>& inputs) {
        const Value y = (*model)(inputs[0], kTraining);
        const Value loss = MeanSquaredError()(inputs[1], y);
        std::vector<Value> outputs = {loss};
        for (const Weight& weight : model->weights()) {
          const std::vector<std::string> names = {weight.name()};
          outputs.push_back(
              DenseGradient(VariableGradients(loss, names)[0],
                            ReadVariable(*loss.builder(), weight.handle())));
        }
        return outputs;
      },
      {RandomTensor({24, 16}, 1, 7), RandomTensor({24, 5}, 1, 8)}, options);
  EXPECT_OK(results);
  return results.ok() ? *results : std::vector<Tensor>();
}

TEST_P(MixedPrecisionTest, GradientsAreFloat32AndCloseToThoseOfFloat32) {
  const std::vector<Tensor> wanted = LossAndGradients(kFloat32Policy);
  const std::vector<Tensor> got = LossAndGradients(GetParam());
  // Three digits more than bfloat16.
  const double tolerance = GetParam() == kMixedFloat16Policy ? 0.003 : 0.02;
  ASSERT_EQ(wanted.size(), 7u);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].type(), wanted[i].type());
    double difference = 0;
    double norm = 0;
    for (int64_t k = 0; k < wanted[i].element_count(); ++k) {
      const double a = got[i].ElementAsDouble(k);
      const double b = wanted[i].ElementAsDouble(k);
      difference += (a - b) * (a - b);
      norm += b * b;
    }
    EXPECT_LT(std::sqrt(difference), tolerance * std::sqrt(norm))
        << "result " << i;
    EXPECT_GT(difference, 0) << "result " << i;
  }
}

}  // namespace
}  // namespace muster
