#include "common/compute/autodiff/gradients.h"

#include <vector>

#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const VariableHandle& Table() {
  static const VariableHandle* const kTable = new VariableHandle{
      .name = "table", .type = {DType::kFloat32, Shape({4, 2})}};
  return *kTable;
}

Tensor TableValue() {
  return Tensor::FromValues<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
}

TensorType Floats(Shape shape) { return {DType::kFloat32, std::move(shape)}; }

Tensor Vector(std::initializer_list<float> values) {
  return Tensor::FromValues<float>({static_cast<int64_t>(values.size())},
                                   values);
}

// Returns the gradient of function(x) at `x`.
Tensor GradientAt(Value (*function)(Value x), const Tensor& x) {
  const auto gradient = Evaluate(
      [&](const std::vector<Value>& inputs) {
        const Value target = function(inputs[0]);
        return DenseGradient(Gradients(target, {inputs[0]})[0], inputs[0]);
      },
      {x});
  EXPECT_OK(gradient);
  return gradient.ok() ? *gradient : Tensor::Zeros(x.dtype(), x.shape());
}

TEST(GradientsTest, SumsTheGradientsOfAllUsesOfAValue) {
  const Tensor gradient = GradientAt(
      [](Value x) { return Sum(x * x + 3 * x + x * x * x); }, Vector({1, 2}));
  EXPECT_THAT(gradient.flat<float>(), ElementsAre(8, 19));
}

TEST(GradientsTest, TreatsATensorTargetAsItsSum) {
  const Tensor gradient =
      GradientAt([](Value x) { return x * x; }, Vector({1, 2}));
  EXPECT_THAT(gradient.flat<float>(), ElementsAre(2, 4));
}

TEST(GradientsTest, GradientOfAValueByItselfIsOne) {
  const Tensor gradient = GradientAt([](Value x) { return x; }, Vector({5, 6}));
  EXPECT_THAT(gradient.flat<float>(), ElementsAre(1, 1));
}

TEST(GradientsTest, ReluAndAbsHaveGradientZeroAtZero) {
  EXPECT_THAT(GradientAt(Relu, Vector({-1, 0, 2})).flat<float>(),
              ElementsAre(0, 0, 1));
  EXPECT_THAT(GradientAt(Relu6, Vector({0, 6, 3})).flat<float>(),
              ElementsAre(0, 0, 1));
  EXPECT_THAT(GradientAt(Abs, Vector({-1, 0, 2})).flat<float>(),
              ElementsAre(-1, 0, 1));
}

TEST(GradientsTest, EqualMaximaShareTheGradientOfTheirMaximum) {
  const Tensor gradient =
      GradientAt([](Value x) { return Max(x); }, Vector({3, 1, 3, 2}));
  EXPECT_THAT(gradient.flat<float>(), ElementsAre(0.5, 0, 0.5, 0));
}

TEST(GradientsTest, MaximumOfEqualOperandsPassesTheGradientToTheFirst) {
  const auto gradients = EvaluateAll(
      [](const std::vector<Value>& inputs) {
        const auto found =
            Gradients(Maximum(inputs[0], inputs[1]), {inputs[0], inputs[1]});
        return std::vector<Value>{found[0].dense, found[1].dense};
      },
      {Vector({1, 2}), Vector({1, 3})});
  ASSERT_OK(gradients);
  EXPECT_THAT((*gradients)[0].flat<float>(), ElementsAre(1, 0));
  EXPECT_THAT((*gradients)[1].flat<float>(), ElementsAre(0, 1));
}

TEST(GradientsTest, SelectionsPassTheGradientToSelectedElements) {
  const Tensor masked = GradientAt(
      [](Value x) {
        const Value rows =
            BooleanMask(x, x > 1.0, {.size = 2, .fill_value = 9}).values;
        return rows * rows;
      },
      Vector({3, 1, 2, 5}));
  EXPECT_THAT(masked.flat<float>(), ElementsAre(6, 0, 4, 0));
  const Tensor unique = GradientAt(
      [](Value x) {
        const Value values = Unique(x, {.size = 3}).values;
        return values * values;
      },
      Vector({3, 1, 3, 1}));
  EXPECT_THAT(unique.flat<float>(), ElementsAre(6, 2, 0, 0));
  const Tensor tiled = GradientAt(
      [](Value x) {
        const Value tiles = Tile(x, {3});
        return tiles * CumSum(OnesLike(tiles));
      },
      Vector({1, 1}));
  EXPECT_THAT(tiled.flat<float>(), ElementsAre(1 + 3 + 5, 2 + 4 + 6));
}

TEST(GradientsTest, NoGradientFlowsThroughStopGradientIntegersOrRounding) {
  GraphBuilder builder(&BuiltinOps(), "stopped");
  const Value x = builder.Parameter("x", Floats({3}));
  EXPECT_FALSE(Gradients(StopGradient(x) * 2, {x})[0].exists());
  EXPECT_FALSE(Gradients(Floor(x), {x})[0].exists());
  const Value through_int = Cast(Cast(x, DType::kInt32), DType::kFloat32);
  EXPECT_FALSE(Gradients(through_int, {x})[0].exists());
  EXPECT_OK(builder.status());
}

TEST(GradientsTest, UnrelatedSourceHasNoGradient) {
  GraphBuilder builder(&BuiltinOps(), "unrelated");
  const Value x = builder.Parameter("x", Floats({3}));
  const Value y = builder.Parameter("y", Floats({3}));
  const Value target = Sum(x);
  const Value later = builder.Parameter("later", Floats({3}));
  const auto gradients = Gradients(target, {x, y, later});
  EXPECT_TRUE(gradients[0].exists());
  EXPECT_FALSE(gradients[1].exists());
  EXPECT_FALSE(gradients[2].exists());
  EXPECT_OK(builder.status());
}

TEST(GradientsTest, UnusedOutputOfASplitContributesZeros) {
  const Tensor gradient = GradientAt(
      [](Value x) {
        return Sum(Square(Split(x, {1, 2}, 0)[1]));
      },
      Vector({1, 2, 3}));
  EXPECT_THAT(gradient.flat<float>(), ElementsAre(0, 4, 6));
}

TEST(GradientsTest, GradientsCanBeDifferentiatedAgain) {
  const Tensor gradient =
      GradientAt([](Value x) { return Gradients(x * x * x, {x})[0].dense; },
                 Vector({1, 2}));
  EXPECT_THAT(gradient.flat<float>(), ElementsAre(6, 12));
}

TEST(GradientsTest, DoesNotDifferentiateBeyondTheSources) {
  GraphBuilder builder(&BuiltinOps(), "behind");
  const Value x = builder.Parameter("x", Floats({3}));
  // The gradient of Gelu cannot be differentiated.
  const Value source = Gradients(Gelu(x), {x})[0].dense;
  EXPECT_TRUE(Gradients(Sum(source * source), {source})[0].exists());
  EXPECT_OK(builder.status());
}

TEST(GradientsTest, RejectsAnIntegerTarget) {
  GraphBuilder builder(&BuiltinOps(), "integer");
  const Value x = builder.Parameter("x", {DType::kInt32, Shape({3})});
  EXPECT_FALSE(Gradients(x, {x})[0].exists());
  EXPECT_THAT(builder.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must be floating, not int32[3]")));
}

TEST(GradientsTest, RejectsASourceOfAnotherGraph) {
  GraphBuilder other(&BuiltinOps(), "other");
  GraphBuilder builder(&BuiltinOps(), "mine");
  const Value x = builder.Parameter("x", Floats({3}));
  const Value foreign = other.Parameter("x", Floats({3}));
  Gradients(Sum(x), {foreign});
  EXPECT_THAT(builder.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("source 0 of Gradients belongs to another")));
}

TEST(GradientsTest, PoisonedTargetHasNoGradients) {
  GraphBuilder builder(&BuiltinOps(), "poisoned");
  const Value x = builder.Parameter("x", Floats({3}));
  const Value poisoned = x + builder.Parameter("y", Floats({4}));
  EXPECT_FALSE(Gradients(poisoned, {x})[0].exists());
  EXPECT_FALSE(Gradients(Value(), {x})[0].exists());
}

TEST(GradientsTest, LookupsGiveASparseGradient) {
  const auto results = EvaluateAll(
      [](const std::vector<Value>& inputs) {
        const Value rows = Gather(inputs[0], inputs[1]);
        const Gradient gradient = Gradients(Sum(rows * rows), {inputs[0]})[0];
        EXPECT_TRUE(gradient.sparse.has_value());
        EXPECT_FALSE(gradient.dense.ok());
        EXPECT_EQ(gradient.sparse->dense, inputs[0].type());
        return std::vector<Value>{gradient.sparse->values,
                                  gradient.sparse->indices};
      },
      {TableValue(), Tensor::FromValues<int32_t>({2, 1}, {3, 0})});
  ASSERT_OK(results);
  EXPECT_EQ((*results)[0].shape(), Shape({2, 2}));
  EXPECT_THAT((*results)[0].flat<float>(), ElementsAre(14, 16, 2, 4));
  EXPECT_THAT((*results)[1].flat<int32_t>(), ElementsAre(3, 0));
}

TEST(GradientsTest, LookupsBesideOtherUsesGiveADenseGradient) {
  const Tensor gradient = GradientAt(
      [](Value x) {
        const Value ids =
            x.builder()->Constant(Tensor::FromValues<int64_t>({3}, {1, 1, 0}));
        return Sum(Gather(x, ids)) + Sum(10 * x);
      },
      TableValue());
  EXPECT_THAT(gradient.flat<float>(),
              ElementsAre(11, 11, 12, 12, 10, 10, 10, 10));
}

TEST(GradientsTest, LookupInAComputedTableReachesItsSources) {
  const Tensor gradient = GradientAt(
      [](Value x) {
        const Value ids =
            x.builder()->Constant(Tensor::FromValues<int32_t>({2}, {2, 2}));
        return Sum(Gather(x * x, ids));
      },
      TableValue());
  EXPECT_THAT(gradient.flat<float>(), ElementsAre(0, 0, 0, 0, 20, 24, 0, 0));
}

// The gradient of a loss with respect to the table.
struct TableGradient {
  bool is_sparse = false;
  std::vector<Tensor> parts;  // {dense} or {values, indices}.
};

TableGradient GradientOfTable(Value (*loss)(GraphBuilder&)) {
  GraphBuilder builder(&BuiltinOps(), "table");
  const Gradient gradient = VariableGradients(loss(builder), {"table"})[0];
  TableGradient result = {.is_sparse = gradient.sparse.has_value()};
  if (result.is_sparse) {
    builder.AddResult(gradient.sparse->values);
    builder.AddResult(gradient.sparse->indices);
    EXPECT_EQ(gradient.sparse->dense, Table().type);
  } else {
    builder.AddResult(gradient.dense);
  }
  const auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  if (!graph.ok()) return result;
  EXPECT_OK(VerifyGraph(*graph, BuiltinOps()));
  const auto parts = Interpret(
      *graph, {}, {.step_seed = 0, .variables = {{"table", TableValue()}}});
  EXPECT_OK(parts);
  if (parts.ok()) result.parts = *parts;
  return result;
}

Value Ids(GraphBuilder& builder, std::initializer_list<int64_t> ids) {
  return builder.Constant(
      Tensor::FromValues<int64_t>({static_cast<int64_t>(ids.size())}, ids));
}

TEST(VariableGradientsTest, SumsTheGradientsOfAllReadsOfAVariable) {
  const TableGradient gradient = GradientOfTable([](GraphBuilder& builder) {
    return Sum(ReadVariable(builder, Table())) +
           Sum(2 * ReadVariable(builder, Table()));
  });
  ASSERT_FALSE(gradient.is_sparse);
  EXPECT_THAT(gradient.parts[0].flat<float>(),
              ElementsAre(3, 3, 3, 3, 3, 3, 3, 3));
}

TEST(VariableGradientsTest, CombinesLookupsOfBothKinds) {
  const TableGradient gradient = GradientOfTable([](GraphBuilder& builder) {
    const Value narrow = builder.Constant(Tensor::Scalar<int32_t>(1));
    return Sum(GatherVariable(Table(), Ids(builder, {2}))) +
           Sum(3 * GatherVariable(Table(), narrow)) +
           Sum(2 *
               Gather(ReadVariable(builder, Table()), Ids(builder, {2, 0})));
  });
  ASSERT_TRUE(gradient.is_sparse);
  std::vector<float> by_row(4, 0);
  const auto values = gradient.parts[0].flat<float>();
  const auto indices = gradient.parts[1].flat<int64_t>();
  ASSERT_EQ(indices.size(), 4u);
  for (size_t i = 0; i < indices.size(); ++i) {
    by_row[indices[i]] += values[2 * i];
  }
  EXPECT_THAT(by_row, ElementsAre(2, 3, 3, 0));
}

TEST(VariableGradientsTest, LookupInLookedUpRowsStaysSparse) {
  const TableGradient gradient = GradientOfTable([](GraphBuilder& builder) {
    const Value rows = GatherVariable(Table(), Ids(builder, {3, 1}));
    return Sum(Gather(rows, Ids(builder, {1, 1}))) + Sum(rows);
  });
  ASSERT_TRUE(gradient.is_sparse);
  EXPECT_THAT(gradient.parts[0].flat<float>(), ElementsAre(1, 1, 3, 3));
  EXPECT_THAT(gradient.parts[1].flat<int64_t>(), ElementsAre(3, 1));
}

TEST(VariableGradientsTest, LookupsBesideAReadGiveADenseGradient) {
  const TableGradient gradient = GradientOfTable([](GraphBuilder& builder) {
    return Sum(GatherVariable(Table(), Ids(builder, {2, 2}))) +
           Sum(ReadVariable(builder, Table()));
  });
  ASSERT_FALSE(gradient.is_sparse);
  EXPECT_THAT(gradient.parts[0].flat<float>(),
              ElementsAre(1, 1, 1, 1, 3, 3, 1, 1));
}

TEST(VariableGradientsTest, VariableThatIsNotReadHasNoGradient) {
  GraphBuilder builder(&BuiltinOps(), "unread");
  const Value x = builder.Parameter("x", Floats({3}));
  const auto gradients = VariableGradients(Sum(x), {"table", "other"});
  EXPECT_FALSE(gradients[0].exists());
  EXPECT_FALSE(gradients[1].exists());
}

TEST(VariableGradientsTest, NoGradientFlowsThroughAnUpdateToEarlierReads) {
  const TableGradient gradient = GradientOfTable([](GraphBuilder& builder) {
    AssignVariable(Table(), 5 * ReadVariable(builder, Table()));
    return Sum(ReadVariable(builder, Table()));
  });
  ASSERT_FALSE(gradient.is_sparse);
  EXPECT_THAT(gradient.parts[0].flat<float>(),
              ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
}

}  // namespace
}  // namespace muster
