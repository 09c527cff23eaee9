// Tests the ops for custom training loops: Einsum, sorting, indexing by
// positions, and checks.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

Tensor Ramp(const Shape& shape) {
  Tensor tensor(DType::kFloat64, shape);
  double next = -3;
  for (double& x : tensor.mutable_flat<double>()) x = (next += 0.7);
  return tensor;
}

// Sums products of elements whose labels have the same positions, by trying all
// positions of all labels.
std::vector<double> SumsOfProducts(const std::string& a_labels,
                                   const std::string& b_labels,
                                   const std::string& output, const Tensor& a,
                                   const Tensor& b) {
  std::string labels = output;
  for (const char label : a_labels + b_labels) {
    if (labels.find(label) == std::string::npos) labels.push_back(label);
  }
  const auto extent = [&](char label) {
    const size_t in_a = a_labels.find(label);
    return in_a != std::string::npos
               ? a.shape().dim(static_cast<int>(in_a))
               : b.shape().dim(static_cast<int>(b_labels.find(label)));
  };
  int64_t count = 1;
  int64_t output_count = 1;
  for (const char label : labels) count *= extent(label);
  for (const char label : output) output_count *= extent(label);
  std::vector<double> sums(output_count, 0);
  for (int64_t i = 0; i < count; ++i) {
    const auto offset = [&](const std::string& own) {
      int64_t position = 0;
      for (const char label : own) {
        int64_t rest = i;
        for (size_t k = labels.size(); k-- > labels.find(label) + 1;) {
          rest /= extent(labels[k]);
        }
        position = position * extent(label) + rest % extent(label);
      }
      return position;
    };
    sums[offset(output)] +=
        a.flat<double>()[offset(a_labels)] * b.flat<double>()[offset(b_labels)];
  }
  return sums;
}

TEST(EinsumTest, SumsProductsAlongLabels) {
  struct Case {
    std::string a, b, output;
    Shape a_shape, b_shape;
  };
  for (const Case& one :
       std::vector<Case>{{"ij", "jk", "ik", {2, 3}, {3, 4}},
                         {"ij", "jk", "ki", {2, 3}, {3, 4}},
                         {"bij", "bjk", "bik", {2, 3, 4}, {2, 4, 5}},
                         {"bqhd", "bkhd", "bhqk", {2, 3, 2, 4}, {2, 5, 2, 4}},
                         {"abc", "cde", "abde", {2, 3, 4}, {4, 3, 2}},
                         {"abcd", "bd", "ac", {2, 3, 2, 4}, {3, 4}},
                         {"i", "j", "ij", {3}, {4}},
                         {"i", "i", "", {3}, {3}},
                         {"ijx", "jk", "k", {2, 3, 2}, {3, 4}}}) {
    SCOPED_TRACE(one.a + "," + one.b + "->" + one.output);
    const Tensor a = Ramp(one.a_shape);
    const Tensor b = Ramp(one.b_shape);
    ASSERT_OK_AND_ASSIGN(const Tensor y,
                         Evaluate(
                             [&](const std::vector<Value>& x) {
                               return Einsum(
                                   one.a + "," + one.b + "->" + one.output,
                                   x[0], x[1]);
                             },
                             {a, b}));
    EXPECT_THAT(
        y.flat<double>(),
        testing::Pointwise(testing::DoubleNear(1e-9),
                           SumsOfProducts(one.a, one.b, one.output, a, b)));
  }
}

absl::Status EinsumError(const std::string& equation) {
  return Evaluate(
             [&](const std::vector<Value>& x) {
               return Einsum(equation, x[0], x[1]);
             },
             {Ramp({2, 3}), Ramp({3, 4})})
      .status();
}

TEST(EinsumTest, RefusesEquationsThatDoNotFit) {
  EXPECT_THAT(EinsumError("ij,jk"), StatusIs(kInvalid, HasSubstr("ij,jk->ik")));
  EXPECT_THAT(EinsumError("ii,jk->k"),
              StatusIs(kInvalid, HasSubstr("letters, each once")));
  EXPECT_THAT(EinsumError("i,jk->k"),
              StatusIs(kInvalid, HasSubstr("a label for each axis")));
  EXPECT_THAT(EinsumError("ij,jk->x"),
              StatusIs(kInvalid, HasSubstr("no operand has")));
}

using Function = std::function<Value(const std::vector<Value>&)>;

TEST(SortTest, OrdersRows) {
  const Tensor x = Tensor::FromValues<float>({2, 4}, {3, 1, 3, 2,  //
                                                      0, -1, 5, 0});
  const auto run = [&](const Function& function) {
    const auto y = Evaluate(function, {x});
    EXPECT_OK(y);
    std::vector<double> numbers;
    for (int64_t i = 0; y.ok() && i < y->element_count(); ++i) {
      numbers.push_back(y->ElementAsDouble(i));
    }
    return numbers;
  };
  EXPECT_THAT(run([](const auto& v) { return Sort(v[0]); }),
              ElementsAre(1, 2, 3, 3, -1, 0, 0, 5));
  EXPECT_THAT(
      run([](const auto& v) { return Sort(v[0], {.descending = true}); }),
      ElementsAre(3, 3, 2, 1, 5, 0, 0, -1));
  // Equal numbers keep their order.
  EXPECT_THAT(run([](const auto& v) { return ArgSort(v[0]); }),
              ElementsAre(1, 3, 0, 2, 1, 0, 3, 2));
  EXPECT_THAT(run([](const auto& v) { return TopK(v[0], 2).indices; }),
              ElementsAre(0, 2, 2, 0));
}

TEST(IndexTest, PositionsOutOfRangeFailTheStep) {
  const auto gather = [](const std::vector<Value>& x) {
    return GatherNd(x[0], x[1]);
  };
  const Tensor table = Ramp({2, 3});
  // The flat position is in range, but the index of the second axis is not.
  EXPECT_THAT(
      Evaluate(gather, {table, Tensor::FromValues<int32_t>({1, 2}, {0, 3})}),
      StatusIs(kInvalid, HasSubstr("an index of axis 1 is not in [0, 3)")));
  const auto sum = [](const std::vector<Value>& x) {
    return SegmentSum(x[0], x[1], 2);
  };
  EXPECT_THAT(Evaluate(sum, {table, Tensor::FromValues<int32_t>({2}, {0, 2})}),
              StatusIs(kInvalid, HasSubstr("an id is not below 2")));
}

std::vector<double> Numbers(const Tensor& tensor) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    numbers.push_back(tensor.ElementAsDouble(i));
  }
  return numbers;
}

TEST(SelectionTest, BooleanMaskHasTheRequestedSize) {
  const Tensor x = Tensor::FromValues<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor mask = Tensor::FromValues<bool>({4}, {true, false, true, true});
  const auto rows = [&](int64_t size) {
    const auto found = EvaluateAll(
        [&](const std::vector<Value>& v) {
          const MaskedRows masked =
              BooleanMask(v[0], v[1], {.size = size, .fill_value = -1});
          return std::vector<Value>{masked.values, masked.count};
        },
        {x, mask});
    EXPECT_OK(found);
    EXPECT_EQ((*found)[1].scalar<int32_t>(), 3);
    EXPECT_EQ((*found)[0].shape(), Shape({size, 2}));
    return Numbers((*found)[0]);
  };
  EXPECT_THAT(rows(3), ElementsAre(1, 2, 5, 6, 7, 8));
  EXPECT_THAT(rows(2), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(rows(5), ElementsAre(1, 2, 5, 6, 7, 8, -1, -1, -1, -1));
}

TEST(SelectionTest, BooleanMaskTakesElementsAndBools) {
  const Tensor x = Tensor::FromValues<bool>({2, 2}, {true, false, true, true});
  const Tensor mask =
      Tensor::FromValues<bool>({2, 2}, {false, true, true, false});
  ASSERT_OK_AND_ASSIGN(const Tensor y,
                       Evaluate(
                           [](const std::vector<Value>& v) {
                             return BooleanMask(v[0], v[1], {.size = 3}).values;
                           },
                           {x, mask}));
  EXPECT_EQ(y.dtype(), DType::kBool);
  EXPECT_THAT(Numbers(y), ElementsAre(0, 1, 0));
}

TEST(SelectionTest, UniqueKeepsTheOrderOfFirstAppearance) {
  const auto unique = [](std::vector<int32_t> x, int64_t size) {
    const auto found = EvaluateAll(
        [&](const std::vector<Value>& v) {
          const UniqueValues u = Unique(v[0], {.size = size, .fill_value = -1});
          return std::vector<Value>{u.values, u.indices, u.count};
        },
        {Tensor::FromSpan<int32_t>({static_cast<int64_t>(x.size())}, x)});
    EXPECT_OK(found);
    std::vector<std::vector<double>> numbers;
    for (const Tensor& tensor : *found) numbers.push_back(Numbers(tensor));
    return numbers;
  };
  using Lists = std::vector<std::vector<double>>;
  EXPECT_EQ(unique({7, 3, 7, 7, 1, 3}, 4),
            (Lists{{7, 3, 1, -1}, {0, 1, 0, 0, 2, 1}, {3}}));
  // Beyond the size, values are dropped and indices are not.
  EXPECT_EQ(unique({7, 3, 7, 7, 1, 3}, 2),
            (Lists{{7, 3}, {0, 1, 0, 0, 2, 1}, {3}}));
  EXPECT_EQ(unique({5}, 1), (Lists{{5}, {0}, {1}}));
  EXPECT_EQ(unique({}, 2), (Lists{{-1, -1}, {}, {0}}));
}

TEST(SelectionTest, RejectsOperandsThatDoNotFit) {
  const auto error = [](const Tensor& x, const Tensor& mask, int64_t size) {
    return Evaluate(
               [&](const std::vector<Value>& v) {
                 return BooleanMask(v[0], v[1], {.size = size}).values;
               },
               {x, mask})
        .status();
  };
  const Tensor two = Tensor::FromValues<bool>({2}, {true, false});
  EXPECT_THAT(error(Ramp({3, 2}), two, 1),
              StatusIs(kInvalid, HasSubstr("axis 0 of x")));
  EXPECT_THAT(error(Ramp({2}), Ramp({2}), 1),
              StatusIs(kInvalid, HasSubstr("needs a bool mask")));
  EXPECT_THAT(error(Ramp({2}), two, 0),
              StatusIs(kInvalid, HasSubstr("size is 0, expected at least 1")));
  EXPECT_THAT(Evaluate(
                  [](const std::vector<Value>& v) {
                    return Unique(v[0], {.size = 1}).values;
                  },
                  {Ramp({2, 2})}),
              StatusIs(kInvalid, HasSubstr("Unique needs one axis")));
  EXPECT_THAT(
      Evaluate([](const std::vector<Value>& v) { return Tile(v[0], {2}); },
               {Ramp({2, 2})}),
      StatusIs(kInvalid, HasSubstr("the multiples are [2] for float64[2,2]")));
}

TEST(TileTest, RepeatsAlongEachAxis) {
  for (const int64_t multiple : {1, 2, 3, 6, 7}) {
    ASSERT_OK_AND_ASSIGN(
        const Tensor y,
        Evaluate(
            [&](const std::vector<Value>& v) {
              return Tile(v[0], {1, multiple});
            },
            {Tensor::FromValues<int32_t>({2, 2}, {1, 2, 3, 4})}));
    ASSERT_EQ(y.shape(), Shape({2, 2 * multiple}));
    for (int64_t i = 0; i < y.element_count(); ++i) {
      EXPECT_EQ(y.ElementAsDouble(i), i / (2 * multiple) * 2 + i % 2 + 1);
    }
  }
}

TEST(CheckTest, AssertFailsTheStepWithItsMessage) {
  const auto check = [](const std::vector<Value>& x) {
    return Assert(x[0], x[0] > 0.0, "x must be positive");
  };
  ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Evaluate(check, {Tensor::FromValues<float>({2}, {1, 2})}));
  EXPECT_THAT(y.flat<float>(), ElementsAre(1, 2));
  EXPECT_THAT(Evaluate(check, {Tensor::FromValues<float>({2}, {1, -2})}),
              StatusIs(kInvalid, HasSubstr("x must be positive (the condition "
                                           "is false at element 1)")));
}

TEST(CheckTest, PrintShowsTheFirstElements) {
  testing::internal::CaptureStderr();
  const auto y = Evaluate(
      [](const std::vector<Value>& x) {
        return Print(x[0], "logits", {.summarize = 2});
      },
      {Tensor::FromValues<float>({3}, {1, 2.5, 3})});
  const std::string printed = testing::internal::GetCapturedStderr();
  ASSERT_OK(y);
  EXPECT_THAT(y->flat<float>(), ElementsAre(1, 2.5, 3));
  EXPECT_THAT(printed, HasSubstr("logits: float32[3] [1 2.5 ...]"));
}

}  // namespace
}  // namespace muster
