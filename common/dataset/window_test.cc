#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/sharding.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

// Returns the windows as text: "0 1 2|3 4".
std::string Windows(const Dataset& dataset) {
  std::vector<std::string> windows;
  for (const Element& element : Elements(dataset)) {
    windows.push_back(absl::StrJoin(element[0].flat<int64_t>(), " "));
  }
  return absl::StrJoin(windows, "|");
}

struct WindowCase {
  int64_t count;
  int64_t size;
  SlidingWindowOptions options;
  std::string expected;  // Of tf.data.Dataset.range(count).window(...).
};

class WindowTest : public testing::TestWithParam<WindowCase> {};

TEST_P(WindowTest, HasTheElementsOfTfData) {
  const WindowCase& c = GetParam();
  const Dataset windows = Dataset::Range(c.count).Window(c.size, c.options);
  EXPECT_EQ(Windows(windows), c.expected);
  EXPECT_THAT(Elements(windows), SizeIs(windows.Cardinality()));
}

INSTANTIATE_TEST_SUITE_P(
    All, WindowTest,
    testing::Values(
        WindowCase{7, 3, {}, "0 1 2|3 4 5|6"},
        WindowCase{7, 3, {.drop_remainder = true}, "0 1 2|3 4 5"},
        WindowCase{5, 3, {.shift = 1}, "0 1 2|1 2 3|2 3 4|3 4|4"},
        WindowCase{
            5, 3, {.shift = 1, .drop_remainder = true}, "0 1 2|1 2 3|2 3 4"},
        WindowCase{
            7, 3, {.shift = 1, .stride = 2}, "0 2 4|1 3 5|2 4 6|3 5|4 6|5|6"},
        WindowCase{
            7, 2, {.shift = 3, .stride = 2, .drop_remainder = true}, "0 2|3 5"},
        WindowCase{9, 2, {.shift = 4}, "0 1|4 5|8"},
        WindowCase{9, 2, {.shift = 4, .drop_remainder = true}, "0 1|4 5"},
        WindowCase{2, 3, {.drop_remainder = true}, ""},
        WindowCase{0, 3, {}, ""}),
    [](const testing::TestParamInfo<WindowCase>& info) {
      const WindowCase& c = info.param;
      return absl::StrCat(c.size, "Of", c.count, "Shift", c.options.shift,
                          "Stride", c.options.stride,
                          c.options.drop_remainder ? "Full" : "");
    });

TEST(WindowTest, StacksEveryComponentAndKnowsItsExtent) {
  const Dataset pairs = Dataset::FromTensorSlices(
      {Tensor::FromValues<int64_t>({4}, {0, 1, 2, 3}),
       Tensor::FromValues<float>({4, 1}, {5, 6, 7, 8})});
  const Dataset full = pairs.Window(2, {.shift = 1, .drop_remainder = true});
  EXPECT_EQ(full.element_types()[1].ToString(), "float32[2,1]");
  EXPECT_THAT(Elements(full)[2][1].flat<float>(), testing::ElementsAre(7, 8));
  EXPECT_EQ(pairs.Window(2).element_types()[1].ToString(), "float32[?,1]");
  EXPECT_EQ(Dataset::Range(3).Repeat().Window(4).element_types()[0].ToString(),
            "int64[4]");
}

TEST(WindowTest, ReturnsTheErrorOfItsInput) {
  auto iterator = FailAt(Stream(9), 3).Window(2, {.shift = 1}).MakeIterator();
  ASSERT_OK(iterator);
  Element element;
  EXPECT_THAT((*iterator)->Next(&element), IsOkAndHolds(true));
  EXPECT_THAT((*iterator)->Next(&element), IsOkAndHolds(true));
  EXPECT_THAT((*iterator)->Next(&element),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(WindowTest, RefusesNumbersThatAreOutOfRange) {
  const Dataset range = Dataset::Range(3);
  EXPECT_THAT(range.Window(0).status(),
              StatusIs(kInvalid, HasSubstr("size is 0")));
  EXPECT_THAT(range.Window(2, {.shift = -1}).status(),
              StatusIs(kInvalid, HasSubstr("shift is -1")));
  EXPECT_THAT(range.Window(2, {.stride = 0}).status(),
              StatusIs(kInvalid, HasSubstr("stride is 0")));
}

TEST(WindowTest, IsNoBatchAndDependsOnPositions) {
  const Dataset windows = Dataset::Range(9).Batch(3).Window(2);
  EXPECT_THAT(BatchSizeOf(windows), IsOkAndHolds(0));
  const auto traits = ShardingTraitsOf(windows.Batch(2));
  ASSERT_OK(traits);
  EXPECT_TRUE(traits->counts_elements);
}

}  // namespace
}  // namespace muster
