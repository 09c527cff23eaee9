#include "common/compute/kernels/cpu/broadcast.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

// Returns the offset in an operand for each output element, according to
// BroadcastWalk.
std::vector<int64_t> Walked(const Shape& output, const Shape& operand,
                            const Shape& other) {
  const Shape* const operands[] = {&operand, &other};
  const BroadcastWalk walk(output, operands);
  std::vector<int64_t> positions;
  walk.ForEachRun([&](int64_t out, const int64_t* offsets) {
    EXPECT_EQ(out, static_cast<int64_t>(positions.size()));
    for (int64_t i = 0; i < walk.run_length(); ++i) {
      positions.push_back(offsets[0] + i * walk.run_stride(0));
    }
  });
  return positions;
}

// The same, computed from the definition of broadcasting.
std::vector<int64_t> Wanted(const Shape& output, const Shape& operand) {
  std::vector<int64_t> positions;
  for (int64_t element = 0; element < output.element_count(); ++element) {
    int64_t rest = element;
    int64_t position = 0;
    int64_t stride = 1;
    for (int axis = output.rank() - 1; axis >= 0; --axis) {
      const int64_t index = rest % output.dim(axis);
      rest /= output.dim(axis);
      const int operand_axis = axis - output.rank() + operand.rank();
      if (operand_axis < 0) continue;
      if (operand.dim(operand_axis) != 1) position += index * stride;
      stride *= operand.dim(operand_axis);
    }
    positions.push_back(position);
  }
  return positions;
}

TEST(BroadcastTest, MatchesTheDefinitionForEveryPairOfShapes) {
  const std::vector<std::pair<Shape, Shape>> pairs = {
      {{}, {}},
      {{3}, {3}},
      {{4, 3}, {3}},
      {{4, 3}, {1, 3}},
      {{4, 3}, {4, 1}},
      {{4, 3}, {}},
      {{4, 1}, {1, 3}},
      {{2, 3, 4}, {2, 3, 4}},
      {{2, 3, 4}, {3, 1}},
      {{2, 3, 4}, {2, 1, 4}},
      {{2, 1, 4}, {1, 3, 1}},
      {{0, 3}, {3}},
      {{2, 3, 4, 5}, {3, 4, 1}},
      {{1, 1}, {1, 1, 1}},
      {{2, 1, 3, 1, 2}, {4, 1, 5, 1}},
      {{2, 0}, {2, 1}},
  };
  for (const auto& [a, b] : pairs) {
    const auto output = BroadcastShapes(a, b);
    ASSERT_TRUE(output.ok());
    EXPECT_EQ(Walked(*output, a, b), Wanted(*output, a)) << a << " with " << b;
    EXPECT_EQ(Walked(*output, b, a), Wanted(*output, b)) << b << " with " << a;
  }
}

TEST(BroadcastTest, EqualShapesAndScalarsAreOneRun) {
  const Shape tensor = {2, 3, 4};
  const Shape scalar;
  const Shape* const operands[] = {&tensor, &scalar};
  const BroadcastWalk walk(tensor, operands);
  EXPECT_EQ(walk.run_length(), 24);
  EXPECT_EQ(walk.run_stride(0), 1);
  EXPECT_EQ(walk.run_stride(1), 0);
}

}  // namespace
}  // namespace muster
