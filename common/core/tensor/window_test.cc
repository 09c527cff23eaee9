#include "common/core/tensor/window.h"

#include <cstdint>
#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using List = std::vector<int64_t>;

WindowAxis Place(const WindowOptions& options, int64_t input, int64_t window,
                 int axis = 0) {
  auto placed = PlaceWindows(options, axis, input, window);
  EXPECT_OK(placed);
  return placed.ok() ? *placed : WindowAxis();
}

TEST(WindowTest, ValidWindowsAreInsideTheInput) {
  EXPECT_EQ(Place({}, 7, 3).output_extent, 5);
  EXPECT_EQ(Place({.strides = {2, 1}}, 7, 3).output_extent, 3);
  EXPECT_EQ(Place({.strides = {2, 1}}, 8, 3).output_extent, 3);
  EXPECT_EQ(Place({.dilations = {3, 1}}, 7, 3).output_extent, 1);
}

TEST(WindowTest, OddSamePaddingIsAtTheEnd) {
  const WindowOptions same = {.strides = {2, 1}, .padding = PaddingKind::kSame};
  const WindowAxis even = Place(same, 224, 3);
  EXPECT_EQ(even.output_extent, 112);
  EXPECT_EQ(even.padding_before, 0);
  EXPECT_EQ(even.padding_after, 1);
  const WindowAxis odd = Place(same, 7, 3);
  EXPECT_EQ(odd.output_extent, 4);
  EXPECT_EQ(odd.padding_before, 1);
  EXPECT_EQ(odd.padding_after, 1);
  EXPECT_EQ(Place(same, 0, 3).output_extent, 0);
}

TEST(WindowTest, PaddingIsNotNegativeWhenStridesSkipElements) {
  const WindowAxis placed = Place(
      {.strides = {4, 1}, .padding = PaddingKind::kSame}, 6, /*window=*/1);
  EXPECT_EQ(placed.output_extent, 2);
  EXPECT_EQ(placed.padding_before, 0);
  EXPECT_EQ(placed.padding_after, 0);
}

TEST(WindowTest, ExplicitPaddingAppliesToItsAxis) {
  const WindowOptions options = {.padding = PaddingKind::kExplicit,
                                 .explicit_padding = {0, 1, 2, 3}};
  EXPECT_EQ(Place(options, 5, 3, 0).output_extent, 4);
  EXPECT_EQ(Place(options, 5, 3, 1).output_extent, 8);
  EXPECT_EQ(Place(options, 5, 3, 1).padding_before, 2);
}

TEST(WindowTest, UnknownExtentsStayUnknown) {
  EXPECT_EQ(Place({}, Shape::kUnknown, 3).output_extent, Shape::kUnknown);
  EXPECT_EQ(Place({}, 3, Shape::kUnknown).output_extent, Shape::kUnknown);
}

TEST(WindowTest, WindowsLargerThanTheInputAreRejected) {
  EXPECT_THAT(PlaceWindows({}, 1, 2, 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("spans 3 elements along the width")));
  EXPECT_THAT(PlaceWindows({}, 0, 2, 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PlaceWindows({}, 0, int64_t{1} << 31, 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(WindowTest, AttributesAreRead) {
  ASSERT_OK_AND_ASSIGN(
      const WindowOptions options,
      WindowOptions::FromAttributes({{"strides", List{2, 3}},
                                     {"dilations", List{4, 5}},
                                     {"padding", std::string("EXPLICIT")},
                                     {"explicit_padding", List{6, 7, 8, 9}}}));
  EXPECT_EQ(options.strides[1], 3);
  EXPECT_EQ(options.dilations[0], 4);
  EXPECT_EQ(options.padding, PaddingKind::kExplicit);
  EXPECT_EQ(options.explicit_padding[3], 9);
}

TEST(WindowTest, InvalidAttributesAreRejected) {
  const std::vector<Attributes> bad = {
      {{"strides", List{0, 1}}},
      {{"strides", List{1}}},
      {{"strides", int64_t{1}}},
      {{"dilations", List{1, int64_t{1} << 31}}},
      {{"padding", std::string("same")}},
      {{"explicit_padding", List{0, 0, -1, 0}}}};
  for (const Attributes& attributes : bad) {
    EXPECT_THAT(WindowOptions::FromAttributes(attributes),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace muster
