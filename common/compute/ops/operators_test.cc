#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// The functions of traced code: numbers as operands, default arguments, and
// errors.
namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TensorType Floats(Shape shape) { return {DType::kFloat32, std::move(shape)}; }

Tensor Vector(std::initializer_list<float> values) {
  return Tensor::FromValues<float>({static_cast<int64_t>(values.size())},
                                   values);
}

std::vector<float> RunOn(Value (*function)(Value), const Tensor& x) {
  const auto y = Evaluate(
      [&](const std::vector<Value>& inputs) { return function(inputs[0]); },
      {x});
  EXPECT_OK(y);
  if (!y.ok()) return {};
  const auto flat = y->flat<float>();
  return {flat.begin(), flat.end()};
}

TEST(OperatorsTest, NumbersTakeTheDtypeOfTheTensor) {
  EXPECT_THAT(RunOn([](Value x) { return 2.0f * x + 1; }, Vector({1, 2})),
              ElementsAre(3, 5));
  EXPECT_THAT(RunOn([](Value x) { return 1 - x / 2; }, Vector({1, 2})),
              ElementsAre(0.5, 0));
  EXPECT_THAT(RunOn([](Value x) { return 6 / -(x - 4); }, Vector({1, 2})),
              ElementsAre(2, 3));
  EXPECT_THAT(RunOn([](Value x) { return Maximum(Minimum(x, 2), 0); },
                    Vector({-1, 1, 3})),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(RunOn([](Value x) { return Pow(x, 2); }, Vector({3})),
              ElementsAre(9));
}

TEST(OperatorsTest, ComparisonOperatorsTakeNumbers) {
  const auto count = [](Value condition) {
    return Sum(Cast(condition, DType::kFloat32));
  };
  const auto counts = EvaluateAll(
      [&](const std::vector<Value>& inputs) {
        const Value x = inputs[0];
        return std::vector<Value>{count(x < 2),       count(x <= 2),
                                  count(x > 2),       count(x >= 2),
                                  count(Equal(x, 2)), count(NotEqual(x, 2))};
      },
      {Vector({1, 2, 3, 4})});
  ASSERT_OK(counts);
  std::vector<float> found;
  for (const Tensor& one : *counts) found.push_back(one.scalar<float>());
  EXPECT_THAT(found, ElementsAre(1, 2, 2, 3, 1, 3));
}

TEST(OperatorsTest, RejectsAFractionAsAnInteger) {
  GraphBuilder builder(&BuiltinOps(), "integers");
  const Value x = builder.Parameter("x", {DType::kInt32, Shape({2})});
  EXPECT_TRUE((x * 2).ok());
  EXPECT_FALSE((x * 0.5).ok());
  EXPECT_THAT(builder.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("0.5 does not fit in int32")));
}

TEST(OperatorsTest, RejectsANumberBeyondTheRangeOfAnInteger) {
  for (const double value : {1e10, -1e10}) {
    GraphBuilder builder(&BuiltinOps(), "integers");
    const Value x = builder.Parameter("x", {DType::kInt32, Shape({2})});
    EXPECT_FALSE((x + value).ok());
  }
  GraphBuilder builder(&BuiltinOps(), "integers");
  const Value x = builder.Parameter("x", {DType::kUint8, Shape({2})});
  EXPECT_FALSE((x - (-1)).ok());
}

TEST(OperatorsTest, ErrorPoisonsDependentValuesAndIsReportedOnce) {
  GraphBuilder builder(&BuiltinOps(), "poisoned");
  const Value x = builder.Parameter("x", Floats({2, 3}));
  const Value wrong = MatMul(x, x);
  const Value after = Mean(Relu(wrong * 2 + 1));
  EXPECT_FALSE(after.ok());
  EXPECT_FALSE(Squeeze(Transpose(wrong)).ok());
  EXPECT_THAT(Split(wrong, {1, 2}, 0), SizeIs(2));
  EXPECT_THAT(Unstack(wrong, 3, 0), SizeIs(3));
  AssignVariable({"v", Floats({2})}, after);
  EXPECT_THAT(builder.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("MatMul \"MatMul\" (float32[2,3], "
                                 "float32[2,3])")));
}

TEST(OperatorsTest, ValueWithoutGraphIsReportedByTheNextBuilder) {
  const Value nothing;
  EXPECT_FALSE((nothing + nothing).ok());
  EXPECT_FALSE((nothing * 2).ok());
  EXPECT_FALSE(Sum(Softmax(nothing)).ok());
  EXPECT_THAT(Split(nothing, {1, 2}, 0), SizeIs(2));
  EXPECT_FALSE(Concat({}, 0).ok());
  GraphBuilder builder(&BuiltinOps(), "mixed");
  const Value x = builder.Parameter("x", Floats({2}));
  EXPECT_FALSE((x + nothing).ok());
  EXPECT_THAT(builder.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("input 1 has no value")));
}

TEST(OperatorsTest, CastToTheSameDtypeAddsNothing) {
  GraphBuilder builder(&BuiltinOps(), "same");
  const Value x = builder.Parameter("x", Floats({2}));
  EXPECT_EQ(Cast(x, DType::kFloat32).output(), x.output());
}

TEST(OperatorsTest, SqueezeRemovesAxesOfExtentOne) {
  GraphBuilder builder(&BuiltinOps(), "squeezed");
  const Value x = builder.Parameter("x", Floats({1, -1, 3, 1}));
  EXPECT_EQ(Squeeze(x).shape(), Shape({-1, 3}));
}

TEST(OperatorsTest, TransposeReversesAllAxes) {
  GraphBuilder builder(&BuiltinOps(), "turned");
  const Value x = builder.Parameter("x", Floats({2, 3, 4}));
  EXPECT_EQ(Transpose(x).shape(), Shape({4, 3, 2}));
}

TEST(OperatorsTest, ReductionsWithoutAxesReturnAScalar) {
  EXPECT_THAT(RunOn([](Value x) { return Sum(x); }, Vector({1, 2, 6})),
              ElementsAre(9));
  EXPECT_THAT(RunOn([](Value x) { return Mean(x); }, Vector({1, 2, 6})),
              ElementsAre(3));
  EXPECT_THAT(RunOn([](Value x) { return Max(x) - Min(x) + Prod(x); },
                    Vector({1, 2, 6})),
              ElementsAre(17));
}

TEST(OperatorsTest, ReadsAndUpdatesKeepTheirOrder) {
  const VariableHandle v = {"v", Floats({2})};
  GraphBuilder builder(&BuiltinOps(), "ordered");
  const Value before = ReadVariable(builder, v);
  AssignAddVariable(v, before);
  const Value after = ReadVariable(builder, v);
  builder.AddResult(after);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  ASSERT_THAT(graph.nodes, SizeIs(3));
  EXPECT_THAT(graph.nodes[1].control_inputs, ElementsAre(0));
  EXPECT_THAT(graph.nodes[2].control_inputs, ElementsAre(1));
}

}  // namespace
}  // namespace muster
