#include "common/compute/ops/random_ops.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kCount = 10000;

using Draw = Value (*)(Value seed, const Shape& shape, DType dtype);

// Returns the numbers that `trace` draws in a step with seed `step_seed`.
Tensor Drawn(const std::function<Value(GraphBuilder&)>& trace,
             uint64_t step_seed = 1) {
  GraphBuilder builder(&BuiltinOps(), "random");
  builder.AddResult(trace(builder));
  const auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  if (!graph.ok()) return Tensor::Zeros(DType::kFloat32, {kCount});
  const auto results = Interpret(*graph, {}, {.step_seed = step_seed});
  EXPECT_OK(results);
  return results.ok() ? (*results)[0]
                      : Tensor::Zeros(DType::kFloat32, {kCount});
}

Tensor DrawnFrom(Draw draw, uint64_t step_seed = 1,
                 DType dtype = DType::kFloat32) {
  return Drawn(
      [&](GraphBuilder& builder) {
        return draw(StepSeed(builder), Shape({kCount}), dtype);
      },
      step_seed);
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double min = 0;
  double max = 0;
};

Moments MomentsOf(const Tensor& drawn) {
  Moments moments = {.min = 1e9, .max = -1e9};
  double square_sum = 0;
  for (int64_t i = 0; i < drawn.element_count(); ++i) {
    const double x = drawn.ElementAsDouble(i);
    moments.mean += x / drawn.element_count();
    square_sum += x * x / drawn.element_count();
    moments.min = std::min(moments.min, x);
    moments.max = std::max(moments.max, x);
  }
  moments.deviation = std::sqrt(square_sum - moments.mean * moments.mean);
  return moments;
}

TEST(RandomOpsTest, UniformCoversTheUnitIntervalEvenly) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16}) {
    const Moments moments = MomentsOf(DrawnFrom(RandomUniform, 1, dtype));
    EXPECT_NEAR(moments.mean, 0.5, 0.02) << dtype;
    EXPECT_NEAR(moments.deviation, std::sqrt(1.0 / 12), 0.01) << dtype;
    EXPECT_GE(moments.min, 0) << dtype;
    EXPECT_LT(moments.max, 1) << dtype;
  }
}

TEST(RandomOpsTest, NormalHasMeanZeroAndDeviationOne) {
  const Moments moments = MomentsOf(DrawnFrom(RandomNormal));
  EXPECT_NEAR(moments.mean, 0, 0.04);
  EXPECT_NEAR(moments.deviation, 1, 0.03);
  EXPECT_GT(moments.max, 3);
}

TEST(RandomOpsTest, TruncatedNormalStaysWithinTwoDeviations) {
  const Moments moments = MomentsOf(DrawnFrom(TruncatedNormal));
  EXPECT_NEAR(moments.mean, 0, 0.04);
  EXPECT_NEAR(moments.deviation, 0.8796, 0.03);
  EXPECT_LE(moments.max, 2);
  EXPECT_GE(moments.min, -2);
}

TEST(RandomOpsTest, RetriedStepDrawsTheSameNumbers) {
  for (const Draw draw : {RandomUniform, RandomNormal, TruncatedNormal}) {
    EXPECT_TRUE(BitwiseEqual(DrawnFrom(draw, 5), DrawnFrom(draw, 5)));
    EXPECT_FALSE(BitwiseEqual(DrawnFrom(draw, 5), DrawnFrom(draw, 6)));
  }
}

TEST(RandomOpsTest, LongerDrawHasTheShorterOneAsPrefix) {
  for (const Draw draw : {RandomUniform, RandomNormal, TruncatedNormal}) {
    const Tensor shorter = Drawn([&](GraphBuilder& builder) {
      return draw(StepSeed(builder), Shape({7}), DType::kFloat32);
    });
    EXPECT_TRUE(BitwiseEqual(DrawnFrom(draw).SliceRows(0, 7), shorter));
  }
}

TEST(RandomOpsTest, FoldedSeedsAreIndependent) {
  const auto folded = [](int64_t data) {
    return Drawn([&](GraphBuilder& builder) {
      return RandomUniform(FoldInSeed(StepSeed(builder), data),
                           Shape({kCount}));
    });
  };
  const Tensor a = folded(1);
  const Tensor b = folded(2);
  double covariance = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    covariance +=
        (a.flat<float>()[i] - 0.5) * (b.flat<float>()[i] - 0.5) / kCount;
  }
  EXPECT_NEAR(covariance, 0, 0.004);
  EXPECT_TRUE(BitwiseEqual(a, folded(1)));
}

TEST(RandomOpsTest, BothHalvesOfASeedMatter) {
  const auto seeded = [](int64_t first, int64_t second) {
    return Drawn([&](GraphBuilder& builder) {
      return RandomUniform(ConstantSeed(builder, first, second), Shape({8}));
    });
  };
  EXPECT_TRUE(BitwiseEqual(seeded(1, 2), seeded(1, 2)));
  EXPECT_FALSE(BitwiseEqual(seeded(1, 2), seeded(1, 3)));
  EXPECT_FALSE(BitwiseEqual(seeded(1, 2), seeded(2, 2)));
}

TEST(RandomOpsTest, RowsDependOnTheirPositionInTheGlobalBatch) {
  using DrawLike = Value (*)(Value seed, Value like, DType dtype);
  for (const DrawLike draw :
       {RandomUniformLike, RandomNormalLike, TruncatedNormalLike}) {
    // Widths that are and are not multiples of a Philox block.
    for (const int64_t width : {1, 3, 4, 7}) {
      const auto drawn = [&](int64_t rows, int64_t offset) {
        return Evaluate(
            [&](const std::vector<Value>& inputs) {
              return draw(StepSeed(*inputs[0].builder()), inputs[0],
                          DType::kFloat32);
            },
            {Tensor::Zeros(DType::kFloat32, {rows, width})},
            {.unknown_extents = true,
             .run = {.step_seed = 9, .example_offset = offset}});
      };
      ASSERT_OK_AND_ASSIGN(const Tensor whole, drawn(10, 0));
      for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}, {4, 10}}) {
        ASSERT_OK_AND_ASSIGN(const Tensor part, drawn(end - begin, begin));
        EXPECT_TRUE(BitwiseEqual(part, whole.SliceRows(begin, end)))
            << "rows of " << width << " from " << begin;
      }
      EXPECT_OK(drawn(0, 10));
    }
  }
}

TEST(RandomOpsTest, NumbersOfAFixedShapeAreTheSameOnAllReplicas) {
  GraphBuilder builder(&BuiltinOps(), "random");
  builder.AddResult(RandomUniform(StepSeed(builder), Shape({5, 3})));
  builder.AddResult(RandomUniformLike(
      StepSeed(builder), builder.Constant(Tensor::Scalar<float>(0))));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(const auto first, Interpret(graph, {}));
  ASSERT_OK_AND_ASSIGN(const auto later,
                       Interpret(graph, {}, {.example_offset = 32}));
  EXPECT_TRUE(BitwiseEqual(first[0], later[0]));
  EXPECT_TRUE(BitwiseEqual(first[1], later[1]));
}

TEST(RandomOpsTest, DropoutMaskKeepsTheGivenFraction) {
  const Tensor x = Tensor::Zeros(DType::kFloat32, {100, 100});
  for (const double keep : {0.0, 0.2, 1.0}) {
    ASSERT_OK_AND_ASSIGN(const Tensor mask,
                         Evaluate(
                             [&](const std::vector<Value>& inputs) {
                               return DropoutMask(
                                   StepSeed(*inputs[0].builder()), inputs[0],
                                   keep);
                             },
                             {x}, {.unknown_extents = true, .run = {}}));
    ASSERT_EQ(mask.type(), (TensorType{DType::kBool, Shape({100, 100})}));
    const auto flat = mask.flat<bool>();
    const double kept =
        static_cast<double>(std::count(flat.begin(), flat.end(), true)) /
        mask.element_count();
    const double slack = keep == 0.2 ? 0.02 : 0;
    EXPECT_NEAR(kept, keep, slack);
  }
}

}  // namespace
}  // namespace muster
