#include "common/compute/variables/constraint.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

proto::Constraint Parse(const std::string& text) {
  proto::Constraint constraint;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &constraint));
  return constraint;
}

std::vector<float> Applied(const std::string& text, const Shape& shape,
                           std::vector<float> values) {
  ApplyConstraint(Parse(text), shape, values.data());
  return values;
}

TEST(ConstraintTest, MaxNormScalesOnlyLongColumns) {
  // Columns (3, 4) and (0.6, 0.8).
  const std::vector<float> out = Applied("max_norm { max_value: 2.5 axis: 0 }",
                                         {2, 2}, {3, 0.6f, 4, 0.8f});
  EXPECT_THAT(out, Pointwise(FloatNear(1e-6f), {1.5f, 0.6f, 2.0f, 0.8f}));
}

TEST(ConstraintTest, UnitNormOfRows) {
  EXPECT_THAT(Applied("unit_norm { axis: -1 }", {2, 2}, {3, 4, 0, 2}),
              Pointwise(FloatNear(1e-6f), {0.6f, 0.8f, 0.0f, 1.0f}));
}

TEST(ConstraintTest, NormsOverSeveralAxesNeedNotBeAdjacent) {
  // Axes 0 and 2 of [2, 2, 2]: norms of {1, 1, 1, 1} and {2, 2, 2, 2}.
  EXPECT_THAT(Applied("unit_norm { axis: [0, 2] }", {2, 2, 2},
                      {1, 1, 2, 2, 1, 1, 2, 2}),
              Pointwise(FloatNear(1e-6f), std::vector<float>(8, 0.5f)));
}

TEST(ConstraintTest, NoAxisMeansAll) {
  EXPECT_THAT(Applied("unit_norm {}", {2, 2}, {1, 1, 1, 1}),
              Pointwise(FloatNear(1e-6f), std::vector<float>(4, 0.5f)));
  EXPECT_THAT(Applied("unit_norm {}", {}, {-4}),
              Pointwise(FloatNear(1e-6f), {-1.0f}));
}

TEST(ConstraintTest, MinMaxNormMovesByTheRate) {
  // Norms 5, 1 and 0.5; halfway to 2, 1 and 1.
  EXPECT_THAT(Applied("min_max_norm { min_value: 1 max_value: 2 rate: 0.5 "
                      "axis: 1 }",
                      {3, 1}, {5, -1, 0.5f}),
              Pointwise(FloatNear(1e-5f), {3.5f, -1.0f, 0.75f}));
}

TEST(ConstraintTest, NonNegKeepsNaN) {
  const std::vector<float> out =
      Applied("non_neg {}", {3}, {-1, std::nanf(""), 2});
  EXPECT_EQ(out[0], 0);
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_EQ(out[2], 2);
}

TEST(ConstraintTest, PartialRowsAreBitIdenticalToTheWhole) {
  for (const char* const text : {"max_norm { max_value: 0.5 axis: 1 }",
                                 "non_neg {}", "unit_norm { axis: [1, 2] }"}) {
    SCOPED_TRACE(text);
    std::vector<float> values;
    for (int i = 0; i < 5 * 3 * 2; ++i) {
      values.push_back(std::sin(static_cast<float>(i)));
    }
    const std::vector<float> whole = Applied(text, {5, 3, 2}, values);
    ASSERT_FALSE(NeedsAllRows(Parse(text), 3));
    ApplyConstraint(Parse(text), {2, 3, 2}, values.data());
    ApplyConstraint(Parse(text), {3, 3, 2}, values.data() + 2 * 3 * 2);
    EXPECT_EQ(values, whole);
  }
}

TEST(ConstraintTest, NeedsAllRowsIfNormsSpanRows) {
  EXPECT_TRUE(NeedsAllRows(Parse("max_norm { axis: 0 }"), 2));
  EXPECT_TRUE(NeedsAllRows(Parse("unit_norm { axis: -2 }"), 2));
  EXPECT_TRUE(NeedsAllRows(Parse("unit_norm {}"), 2));
  EXPECT_FALSE(NeedsAllRows(Parse("min_max_norm { axis: 1 }"), 2));
  EXPECT_FALSE(NeedsAllRows(Parse("non_neg {}"), 2));
  EXPECT_FALSE(NeedsAllRows(Parse("unit_norm {}"), 0));
  EXPECT_FALSE(NeedsAllRows(proto::Constraint(), 2));
}

TEST(ConstraintTest, EmptyVariablesStayEmpty) {
  EXPECT_THAT(Applied("unit_norm { axis: 0 }", {0, 3}, {}), ElementsAre());
  EXPECT_THAT(Applied("unit_norm { axis: 1 }", {3, 0}, {}), ElementsAre());
}

TEST(ConstraintTest, RefusesInvalidArgumentsByName) {
  const auto message = [](const std::string& text) {
    const absl::Status status = CheckConstraint(Parse(text), {4, 2});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(status.message());
  };
  EXPECT_OK(
      CheckConstraint(Parse("max_norm { max_value: 0 axis: -2 }"), {4, 2}));
  EXPECT_THAT(message("max_norm { max_value: -1 }"),
              HasSubstr("max_norm: max_value is -1, expected 0 or more"));
  EXPECT_THAT(message("min_max_norm { min_value: 2 max_value: 1 rate: 1 }"),
              HasSubstr("expected 0 <= min_value <= max_value"));
  EXPECT_THAT(message("min_max_norm { max_value: 1 rate: 1.5 }"),
              HasSubstr("rate is 1.5, expected 0 to 1"));
  EXPECT_THAT(message("unit_norm { axis: [1, 1] }"),
              HasSubstr("axis 1 occurs twice"));
  EXPECT_THAT(message("unit_norm { axis: 2 }"),
              HasSubstr("axis 2 does not exist"));
  EXPECT_THAT(message("unit_norm { axis: [0, -2] }"),
              HasSubstr("are the same"));
}

}  // namespace
}  // namespace muster
