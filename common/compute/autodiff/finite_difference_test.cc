#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/control_flow_samples.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/recurrence_options.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Compares every gradient rule with central differences in float64, using the
// reference kernels. Covers first and second derivatives, with extents known
// and unknown while tracing.
namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-6;

struct Case {
  std::string op;
  Attributes attributes;
  std::vector<Tensor> inputs;  // Gradients are computed for the float64 inputs.
  Subgraphs subgraphs = {};
};

// Returns distinct numbers in (low, high), the same in every run.
Tensor Numbers(const Shape& shape, double low = -2, double high = 2,
               uint64_t salt = 0) {
  Tensor tensor(DType::kFloat64, shape);
  uint64_t key = 17 + salt + tensor.element_count();
  for (const int64_t dim : shape.dims()) key = FoldIn(key, dim);
  RandomStream stream(key);
  for (double& element : tensor.mutable_flat<double>()) {
    element = low + (high - low) * UnitFloat(stream.Next64() >> 32);
  }
  return tensor;
}

Tensor Positive(const Shape& shape) { return Numbers(shape, 0.3, 2.5); }

Tensor Ids(const Shape& shape, std::initializer_list<int32_t> ids) {
  return Tensor::FromValues<int32_t>(shape, ids);
}

// Returns rows that sum to 1.
Tensor Distribution() {
  return Tensor::FromValues<double>({2, 3}, {0.2, 0.5, 0.3, 0, 1, 0});
}

// Adds cases of elementwise ops with the samples of their schemas.
void AddElementwiseCases(std::vector<Case>* cases) {
  const std::vector<std::vector<Shape>> shape_lists = {
      {{3, 4}},         {{2, 3}, {2, 3}}, {{2, 3}, {}},        {{}, {2, 3}},
      {{2, 3}, {3}},    {{3, 1}, {1, 4}}, {{2, 1, 3}, {4, 1}}, {{1}, {2, 2}},
      {{0, 3}, {1, 3}},
  };
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (!schema->is_elementwise || schema->gradient_rule == nullptr) continue;
    for (const std::vector<Shape>& shapes : shape_lists) {
      for (const OpCase& one :
           ElementwiseCases(*schema, DType::kFloat64, shapes)) {
        // A Cast to another dtype rounds, which central differences cannot
        // check.
        if (one.attributes.GetOr("dtype", DType::kFloat64) != DType::kFloat64) {
          continue;
        }
        Case numbers = {one.op, one.attributes, {}};
        for (const OpInput& input : one.inputs) {
          numbers.inputs.push_back(Numbers(input.shape, input.low, input.high,
                                           numbers.inputs.size()));
        }
        cases->push_back(std::move(numbers));
      }
    }
  }
}

void AddSelectAndRowCases(std::vector<Case>* cases) {
  const Tensor condition =
      Tensor::FromValues<bool>({2, 3}, {true, false, true, true, false, false});
  cases->push_back({"Select", {}, {condition, Numbers({2, 3}), Numbers({3})}});
  cases->push_back(
      {"Select", {}, {condition, Numbers({}), Numbers({4, 1, 1})}});
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    cases->push_back({op, {}, {Numbers({2, 3}, -3, 3)}});
  }
}

// Adds cases of the ops that compute gradients.
void AddGradientOpCases(std::vector<Case>* cases) {
  cases->push_back({"SoftmaxGrad", {}, {Numbers({2, 3}), Distribution()}});
  cases->push_back({"SoftmaxCrossEntropyGrad",
                    {},
                    {Numbers({2, 3}), Distribution(), Numbers({2})}});
  cases->push_back({"SparseSoftmaxCrossEntropyGrad",
                    {},
                    {Numbers({2, 3}), Ids({2}, {2, 0}), Numbers({2})}});
  cases->push_back({"PadLike",
                    {{"begin", std::vector<int64_t>{1, 0}}},
                    {Numbers({2, 2}), Numbers({4, 3})}});
  cases->push_back({"SliceLike",
                    {{"begin", std::vector<int64_t>{1, 0}}},
                    {Numbers({4, 3}), Numbers({2, 2})}});
  cases->push_back({"SplitLike",
                    {{"axis", int64_t{-1}}},
                    {Numbers({2, 5}), Numbers({2, 4}), Numbers({2, 1})}});
  cases->push_back({"SumLike", {}, {Numbers({4, 2, 3}), Numbers({2, 1})}});
  cases->push_back(
      {"BroadcastLike", {}, {Numbers({2, 1}), Numbers({4, 2, 3})}});
  cases->push_back({"ReshapeLike", {}, {Numbers({2, 3}), Numbers({3, 2})}});
  for (const int64_t axis : {0, 1}) {
    cases->push_back({"ScatterRowsLike",
                      {{"axis", axis}},
                      {axis == 0 ? Numbers({3, 4}) : Numbers({4, 3}),
                       Ids({3}, {1, 0, 1}), Numbers({4, 4})}});
  }
}

void AddReductionCases(std::vector<Case>* cases) {
  const std::vector<std::vector<int64_t>> axes_lists = {
      {0, 1, 2}, {0}, {1}, {-1}, {0, 2}, {0, 1}, {}};
  for (const auto& axes : axes_lists) {
    for (const bool keep_dims : {false, true}) {
      const Attributes attributes = {{"axes", axes}, {"keep_dims", keep_dims}};
      for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
        cases->push_back({op, attributes, {Numbers({2, 3, 4})}});
      }
      cases->push_back({"Prod", attributes, {Numbers({2, 2, 3})}});
    }
  }
  // Products that have factors of zero.
  cases->push_back(
      {"Prod",
       {{"axes", std::vector<int64_t>{1}}},
       {Tensor::FromValues<double>({3, 3}, {2, 0, 3, 0, 0, 5, 1, 2, 3})}});
}

void AddMatMulCases(std::vector<Case>* cases) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Attributes attributes = {{"transpose_a", ta}, {"transpose_b", tb}};
      const auto a = [&](Shape batch) {
        batch.AddDim(ta ? 4 : 3);
        batch.AddDim(ta ? 3 : 4);
        return Numbers(batch);
      };
      const auto b = [&](Shape batch) {
        batch.AddDim(tb ? 2 : 4);
        batch.AddDim(tb ? 4 : 2);
        return Numbers(batch);
      };
      cases->push_back({"MatMul", attributes, {a({}), b({})}});
      cases->push_back({"MatMul", attributes, {a({2}), b({2})}});
      cases->push_back({"MatMul", attributes, {a({2}), b({})}});
      cases->push_back({"MatMul", attributes, {a({}), b({2})}});
      cases->push_back({"MatMul", attributes, {a({2, 1}), b({3})}});
    }
  }
}

void AddShapeCases(std::vector<Case>* cases) {
  using List = std::vector<int64_t>;
  const Tensor x = Numbers({2, 3, 4});
  cases->push_back({"Reshape", {{"shape", List{4, -1}}}, {x}});
  cases->push_back({"ExpandDims", {{"axis", int64_t{-1}}}, {x}});
  cases->push_back({"Squeeze", {{"axes", List{1}}}, {Numbers({2, 1, 3})}});
  cases->push_back({"Transpose", {{"permutation", List{2, 0, 1}}}, {x}});
  cases->push_back({"Transpose", {{"permutation", List{-1, 0, 1}}}, {x}});
  cases->push_back({"Reverse", {{"axes", List{-1, 0}}}, {x}});
  cases->push_back(
      {"BroadcastTo", {{"shape", List{2, 2, 3}}}, {Numbers({2, 1})}});
  cases->push_back({"Concat",
                    {{"axis", int64_t{1}}},
                    {Numbers({2, 1}), Numbers({2, 3}), Numbers({2, 0})}});
  cases->push_back(
      {"Split", {{"sizes", List{1, -1, 2}}, {"axis", int64_t{-1}}}, {x}});
  cases->push_back(
      {"Stack", {{"axis", int64_t{-1}}}, {Numbers({2, 3}), Numbers({2, 3})}});
  cases->push_back(
      {"Unstack", {{"axis", int64_t{1}}, {"count", int64_t{3}}}, {x}});
  cases->push_back(
      {"Slice", {{"begin", List{0, 1, 2}}, {"size", List{2, -1, 1}}}, {x}});
  cases->push_back({"Pad",
                    {{"paddings", List{1, 0, 2, 1}}, {"value", 1.5}},
                    {Numbers({2, 3})}});
  cases->push_back(
      {"Gather", {{"axis", int64_t{0}}}, {x, Ids({3}, {1, 0, 1})}});
  cases->push_back(
      {"Gather", {{"axis", int64_t{0}}}, {x, Ids({2, 2}, {1, 0, 1, 1})}});
  cases->push_back({"Gather", {{"axis", int64_t{0}}}, {x, Ids({}, {1})}});
  cases->push_back(
      {"Gather", {{"axis", int64_t{-2}}}, {x, Ids({2, 2}, {2, 0, 2, 1})}});
}

void AddLossCases(std::vector<Case>* cases) {
  cases->push_back(
      {"SoftmaxCrossEntropy", {}, {Numbers({2, 3}), Distribution()}});
  cases->push_back(
      {"SparseSoftmaxCrossEntropy", {}, {Numbers({2, 3}), Ids({2}, {2, 0})}});
}

void AddImageCases(std::vector<Case>* cases) {
  for (const char* interpolation : {"bilinear", "nearest"}) {
    const Attributes resize = {{"height", int64_t{2}},
                               {"width", int64_t{5}},
                               {"interpolation", std::string(interpolation)}};
    cases->push_back({"ResizeImage", resize, {Numbers({2, 3, 2, 2})}});
    cases->push_back({"ResizeImageGrad",
                      resize,
                      {Numbers({1, 2, 5, 2}), Numbers({1, 3, 2, 2})}});
  }
  const Tensor transforms = Tensor::FromValues<float>(
      {2, 8}, {0.8f, -0.5f, 0.7f, 0.6f, 0.9f, -1.3f, 0, 0,  //
               1.4f, 0.2f, 0.1f, 0.1f, 0.7f, 0.4f, 0.01f, 0.1f});
  for (const char* mode : {"constant", "nearest", "reflect", "wrap"}) {
    const Attributes attributes = {{"interpolation", std::string("bilinear")},
                                   {"fill_mode", std::string(mode)},
                                   {"fill_value", 0.5}};
    const Tensor images = Numbers({2, 3, 2, 1});
    cases->push_back({"ImageTransform", attributes, {images, transforms}});
    cases->push_back({"ImageTransformGrad", attributes, {images, transforms}});
  }
}

// Adds cases of convolutions, forward and transposed. Only the type of a
// transposed convolution's last input matters.
void AddConvCases(std::vector<Case>* cases) {
  using List = std::vector<int64_t>;
  struct Convolution {
    Attributes attributes;
    Shape x, kernel, y;
    std::string prefix;
  };
  const Attributes same = {{"strides", List{2, 1}},
                           {"dilations", List{1, 2}},
                           {"padding", std::string("SAME")}};
  Attributes grouped = same;
  grouped.Set("groups", int64_t{2});
  const Attributes padded = {{"padding", std::string("EXPLICIT")},
                             {"explicit_padding", List{0, 1, 2, 0}}};
  for (const Convolution& c : std::vector<Convolution>{
           {{}, {2, 3, 4, 2}, {2, 3, 2, 3}, {2, 2, 2, 3}, ""},
           {same, {1, 4, 3, 2}, {3, 2, 2, 2}, {1, 2, 3, 2}, ""},
           {grouped, {1, 4, 3, 4}, {3, 2, 2, 2}, {1, 2, 3, 2}, ""},
           {padded, {1, 2, 2, 1}, {2, 2, 1, 2}, {1, 2, 3, 2}, ""},
           {same, {1, 4, 3, 2}, {3, 2, 2, 2}, {1, 2, 3, 4}, "Depthwise"},
           {padded, {2, 2, 2, 2}, {2, 2, 2, 1}, {2, 2, 3, 2}, "Depthwise"}}) {
    const Tensor x = Numbers(c.x);
    const Tensor kernel = Numbers(c.kernel);
    const Tensor y = Numbers(c.y);
    const std::string op = c.prefix + "Conv2D";
    cases->push_back({op, c.attributes, {x, kernel}});
    cases->push_back({op + "BackpropInput", c.attributes, {y, kernel, x}});
    cases->push_back({op + "BackpropKernel", c.attributes, {x, y, kernel}});
  }
}

void AddPoolCases(std::vector<Case>* cases) {
  using List = std::vector<int64_t>;
  const Attributes valid = {{"window", List{2, 2}}, {"strides", List{2, 2}}};
  const Attributes same = {{"window", List{3, 2}},
                           {"strides", List{2, 1}},
                           {"padding", std::string("SAME")}};
  const Tensor x = Numbers({2, 4, 5, 2});
  for (const char* pool : {"MaxPool2D", "AveragePool2D"}) {
    const std::string op = pool;
    cases->push_back({op, valid, {x}});
    cases->push_back({op, same, {x}});
    cases->push_back({op + "Grad", valid, {Numbers({2, 2, 2, 2}), x}});
    cases->push_back({op + "Grad", same, {Numbers({2, 2, 5, 2}), x}});
  }
  cases->push_back(
      {"MaxPool2DSelect", same, {Numbers({2, 4, 5, 2}, -1, 3), x}});
}

void AddNormalizationCases(std::vector<Case>* cases) {
  const Attributes epsilon = {{"epsilon", 0.01}};
  for (const Shape& shape : {Shape{6, 2}, Shape{2, 2, 3, 2}}) {
    const Tensor x = Numbers(shape);
    const Tensor scale = Numbers({2}, 0.5, 1.5);
    const Tensor offset = Numbers({2});
    cases->push_back({"BatchNormTraining", epsilon, {x, scale, offset}});
    cases->push_back({"BatchNormInference",
                      epsilon,
                      {x, scale, offset, offset, Positive({2})}});
  }
  const Tensor x = Numbers({3, 2, 4});
  for (const Shape& features : {Shape{4}, Shape{2, 4}, Shape{3, 2, 4}}) {
    const Shape rows(x.shape().dims().subspan(0, 3 - features.rank()));
    const Tensor scale = Numbers(features, 0.5, 1.5);
    cases->push_back({"LayerNorm", epsilon, {x, scale, Numbers(features)}});
    cases->push_back({"LayerNormGrad",
                      epsilon,
                      {Numbers(x.shape(), -2, 2, 1), x, scale,
                       Numbers(rows, -1, 1), Positive(rows)}});
  }
}

void AddRecurrence(const std::string& cell, const std::string& activation,
                   bool is_masked, bool zero_output, std::vector<Case>* cases) {
  constexpr int64_t kUnits = 2;
  const int64_t gates = cell == "simple_rnn" ? 1 : cell == "lstm" ? 4 : 3;
  const Attributes attributes = {{"cell", cell},
                                 {"units", kUnits},
                                 {"activation", activation},
                                 {"recurrent_activation", activation},
                                 {"go_backwards", is_masked},
                                 {"zero_output_for_mask", zero_output},
                                 {"keep_steps", false},
                                 {"has_scale", is_masked},
                                 {"has_mask", is_masked}};
  Case one = {"Recurrence",
              attributes,
              {Numbers({2, 4, gates * kUnits}),
               Numbers({kUnits, gates * kUnits}), Numbers({2, kUnits})}};
  if (cell == "lstm") one.inputs.push_back(Numbers({2, kUnits}, -1, 1));
  if (cell == "gru_reset_after") {
    one.inputs.push_back(Numbers({gates * kUnits}));
  }
  if (is_masked) {
    one.inputs.push_back(Numbers({2, kUnits}, 0.5, 2));
    one.inputs.push_back(Tensor::FromValues<bool>(
        {2, 4}, {true, false, true, true, false, true, false, false}));
  }
  cases->push_back(std::move(one));
}

void AddRecurrenceCases(std::vector<Case>* cases) {
  for (const char* cell :
       {"simple_rnn", "lstm", "gru_reset_after", "gru_reset_before"}) {
    for (const bool is_masked : {false, true}) {
      for (const bool zero_output : {false, true}) {
        AddRecurrence(cell, "tanh", is_masked, zero_output, cases);
      }
    }
    for (const char* activation : {"sigmoid", "softmax"}) {
      AddRecurrence(cell, activation, false, false, cases);
    }
  }
  for (const absl::string_view activation : RecurrenceActivations()) {
    AddRecurrence("simple_rnn", std::string(activation), false, false, cases);
  }
}

void AddSortAndCheckCases(std::vector<Case>* cases) {
  const Tensor x = Numbers({2, 5});
  const Tensor indices = Ids({2, 3}, {4, 0, 4, 1, 2, 3});
  for (const bool smallest : {false, true}) {
    cases->push_back(
        {"TopK", {{"k", int64_t{3}}, {"smallest", smallest}}, {x}});
  }
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      cases->push_back({"CumSum",
                        {{"axis", int64_t{1}},
                         {"exclusive", exclusive},
                         {"reverse", reverse}},
                        {x}});
    }
  }
  cases->push_back({"TakeAlongRows", {}, {x, indices}});
  cases->push_back({"AddAlongRowsLike", {}, {Numbers({2, 3}), indices, x}});
  cases->push_back({"Print",
                    {{"label", std::string("x")}, {"summarize", int64_t{0}}},
                    {Numbers({1})}});
  cases->push_back({"Assert",
                    {{"message", std::string("is wrong")}},
                    {x, Tensor::Scalar<bool>(true)}});
}

// Adds cases with a single replica. common/compute/runtime tests several.
void AddReplicaCases(std::vector<Case>* cases) {
  for (const char* reduction : {"sum", "mean"}) {
    cases->push_back({"AllReduce",
                      {{"reduction", std::string(reduction)}},
                      {Numbers({2, 3})}});
  }
  cases->push_back({"AllGather", {}, {Numbers({2, 3})}});
  cases->push_back({"ReplicaPart", {}, {Numbers({3, 2}), Ids({3}, {0, 1, 2})}});
}

void AddControlFlowCases(std::vector<Case>* cases) {
  for (ControlFlowSample& sample : ControlFlowSamples(DType::kFloat64)) {
    Case one = {sample.op, sample.attributes, {}, std::move(sample.subgraphs)};
    for (const TensorType& type : sample.inputs) {
      one.inputs.push_back(type.dtype == DType::kFloat64
                               ? Numbers(type.shape, -2, 2, one.inputs.size())
                               : Tensor::Zeros(type.dtype, type.shape));
    }
    cases->push_back(one);
    if (one.inputs[0].dtype() != DType::kBool) continue;
    one.inputs[0] = Tensor::Scalar(true);
    cases->push_back(one);
  }
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  AddElementwiseCases(&cases);
  AddSelectAndRowCases(&cases);
  AddGradientOpCases(&cases);
  AddReductionCases(&cases);
  AddMatMulCases(&cases);
  AddShapeCases(&cases);
  AddLossCases(&cases);
  AddImageCases(&cases);
  AddConvCases(&cases);
  AddPoolCases(&cases);
  AddNormalizationCases(&cases);
  AddRecurrenceCases(&cases);
  AddControlFlowCases(&cases);
  AddSortAndCheckCases(&cases);
  AddReplicaCases(&cases);
  return cases;
}

// Returns a scalar to which every element of the values contributes with a
// different weight.
Value WeightedSum(const std::vector<Value>& values, int64_t salt) {
  Value total;
  for (const Value& value : values) {
    if (!IsFloating(value.dtype())) continue;  // Positions of TopK.
    const Value seed =
        ConstantSeed(*value.builder(), salt, value.output().output);
    const Value sum =
        Sum(value * RandomUniformLike(seed, value, DType::kFloat64));
    total = total.ok() ? total + sum : sum;
  }
  return total;
}

std::vector<Value> FloatingOnes(const std::vector<Value>& inputs) {
  std::vector<Value> floating;
  for (const Value& input : inputs) {
    if (input.dtype() == DType::kFloat64) floating.push_back(input);
  }
  return floating;
}

Value Forward(const Case& one, const std::vector<Value>& inputs) {
  return WeightedSum(inputs[0].builder()->OpWithOutputs(
                         one.op, inputs, one.attributes, one.subgraphs),
                     /*salt=*/1);
}

std::vector<Value> DenseGradients(Value target,
                                  const std::vector<Value>& inputs) {
  const std::vector<Value> sources = FloatingOnes(inputs);
  const std::vector<Gradient> gradients = Gradients(target, sources);
  std::vector<Value> dense;
  for (size_t i = 0; i < sources.size(); ++i) {
    dense.push_back(DenseGradient(gradients[i], sources[i]));
  }
  return dense;
}

// Returns a scalar function of the first gradients.
Value ForwardOfGradients(const Case& one, const std::vector<Value>& inputs) {
  return WeightedSum(DenseGradients(Forward(one, inputs), inputs), /*salt=*/2);
}

// Returns why the gradients of `one` cannot be differentiated; "" if they can.
std::string SecondDerivativeRefusal(const Case& one) {
  std::string refusal;
  const auto trace = [&](const std::vector<Value>& inputs) {
    const std::vector<Value> gradients =
        DenseGradients(Forward(one, inputs), inputs);
    for (const Node& node : inputs[0].builder()->graph().nodes) {
      const OpSchema& schema = *BuiltinOps().Find(node.op);
      if (!schema.gradient_refusal.empty()) refusal = schema.gradient_refusal;
    }
    return gradients;
  };
  EXPECT_OK(EvaluateAll(trace, one.inputs));
  return refusal;
}

using ScalarFunction = Value (*)(const Case&, const std::vector<Value>&);

// Compares the gradients of `function` with central differences.
void ExpectGradientsMatchDifferences(const Case& one, ScalarFunction function,
                                     bool unknown_extents) {
  const InterpretOptions options = {.unknown_extents = unknown_extents,
                                    .run = {}};
  const auto trace_gradients = [&](const std::vector<Value>& inputs) {
    return DenseGradients(function(one, inputs), inputs);
  };
  const auto trace_value = [&](const std::vector<Value>& inputs) {
    return function(one, inputs);
  };
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> gradients,
                       EvaluateAll(trace_gradients, one.inputs, options));
  size_t next_gradient = 0;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    if (one.inputs[i].dtype() != DType::kFloat64) continue;
    const Tensor& gradient = gradients[next_gradient++];
    ASSERT_EQ(gradient.type(), one.inputs[i].type());
    for (int64_t e = 0; e < one.inputs[i].element_count(); ++e) {
      const auto value_at = [&](double shift) {
        std::vector<Tensor> inputs = one.inputs;
        inputs[i] = inputs[i].Clone();
        inputs[i].mutable_flat<double>()[e] += shift;
        const auto value = Evaluate(trace_value, inputs, options);
        EXPECT_OK(value);
        return value.ok() ? value->scalar<double>() : std::nan("");
      };
      const double difference =
          (value_at(kStep) - value_at(-kStep)) / (2 * kStep);
      const double analytic = gradient.flat<double>()[e];
      ASSERT_NEAR(analytic, difference,
                  kTolerance * std::max(1.0, std::abs(difference)))
          << "input " << i << ", element " << e;
    }
  }
}

std::string Describe(const Case& one) {
  std::string text = one.op + "(";
  for (const Tensor& input : one.inputs) text += input.type().ToString() + " ";
  for (const auto& [name, value] : one.attributes.values()) {
    text += name + "=" + AttributeToString(value) + " ";
  }
  return text + ")";
}

TEST(FiniteDifferenceTest, GradientsMatchDifferences) {
  for (const Case& one : AllCases()) {
    SCOPED_TRACE(Describe(one));
    ExpectGradientsMatchDifferences(one, Forward, false);
    ExpectGradientsMatchDifferences(one, Forward, true);
  }
}

TEST(FiniteDifferenceTest, SecondDerivativesMatchDifferencesOrAreRejected) {
  std::set<std::string> refusals;
  for (const Case& one : AllCases()) {
    SCOPED_TRACE(Describe(one));
    const std::string refusal = SecondDerivativeRefusal(one);
    if (refusal.empty()) {
      ExpectGradientsMatchDifferences(one, ForwardOfGradients, false);
      ExpectGradientsMatchDifferences(one, ForwardOfGradients, true);
      continue;
    }
    refusals.insert(refusal);
    const auto second = [&](const std::vector<Value>& inputs) {
      return DenseGradients(ForwardOfGradients(one, inputs), inputs);
    };
    EXPECT_THAT(EvaluateAll(second, one.inputs),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(refusal)));
  }
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    EXPECT_TRUE(schema->gradient_refusal.empty() ||
                refusals.contains(schema->gradient_refusal))
        << "no case covers the refusal of " << schema->name;
  }
}

TEST(FiniteDifferenceTest, EveryDifferentiableOpHasACase) {
  std::set<std::string> covered;
  for (const Case& one : AllCases()) covered.insert(one.op);
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    // The gradient of a program is a part of the program.
    if (schema->reads == OpReads::kPlugin) continue;
    EXPECT_TRUE(schema->gradient_rule == nullptr ||
                covered.contains(schema->name))
        << schema->name << " has a gradient rule and no case: declare it "
        << "is_elementwise with samples that its type rule accepts, or add a "
        << "case here";
  }
}

}  // namespace
}  // namespace muster
