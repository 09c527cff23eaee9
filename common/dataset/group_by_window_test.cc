#include "common/dataset/group_by_window.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<TensorType> kBatches = {
    {DType::kInt64, Shape({Shape::kUnknown})}};

absl::StatusOr<int64_t> Modulo3(const Element& element) {
  return element[0].scalar<int64_t>() % 3;
}

// Returns the elements as text: "0 1 2|3 4".
std::string Text(const Dataset& dataset) {
  std::vector<std::string> elements;
  for (const Element& element : Elements(dataset)) {
    elements.push_back(absl::StrJoin(element[0].flat<int64_t>(), " "));
  }
  return absl::StrJoin(elements, "|");
}

Dataset Batched(int64_t batch_size, const Dataset& window) {
  return window.Batch(batch_size);
}

// The expected elements are those of tf.data.Dataset.group_by_window.
TEST(GroupByWindow, ReducesWindowsWhenTheyAreFull) {
  const auto reduce = [](int64_t, const Dataset& window) {
    return Batched(10, window);
  };
  const Dataset grouped = GroupByWindow(
      Stream(11), {.key_of = Modulo3, .reduce = reduce, .window_size = 2},
      kBatches);
  EXPECT_EQ(Text(grouped), "0 3|1 4|2 5|6 9|7 10|8");
  EXPECT_EQ(Text(grouped.Skip(4)), "7 10|8");
}

TEST(GroupByWindow, SizesMayDependOnTheKeyAndTheRestIsByAscendingKeys) {
  const Dataset grouped = GroupByWindow(
      Stream(11),
      {.key_of = [](const Element& element) -> absl::StatusOr<int64_t> {
         return -(element[0].scalar<int64_t>() % 3);
       },
       .reduce = [](int64_t,
                    const Dataset& window) { return Batched(2, window); },
       .window_size_of = [](int64_t key) { return 2 - key; }},
      kBatches);
  EXPECT_EQ(Text(grouped), "0 3|1 4|7|6 9|2 5|8|10");
}

TEST(GroupByWindow, AWindowMayBecomeAnyNumberOfElements) {
  const Dataset grouped = GroupByWindow(
      Stream(6),
      {.key_of = [](const Element& element) -> absl::StatusOr<int64_t> {
         return element[0].scalar<int64_t>() % 2;
       },
       .reduce = [](int64_t,
                    const Dataset& window) { return window.Repeat(2); },
       .window_size = 2},
      {{DType::kInt64, Shape()}});
  EXPECT_THAT(Numbers(grouped),
              ElementsAre(0, 2, 0, 2, 1, 3, 1, 3, 4, 4, 5, 5));
}

TEST(GroupByWindow, ReportsErrorsOfItsInputAndItsFunctions) {
  const GroupByWindowOptions options = {
      .key_of = Modulo3,
      .reduce = [](int64_t, const Dataset& window) { return window; },
      .window_size = 1};
  const auto fails = [](const Dataset& dataset, absl::StatusCode code,
                        const char* message) {
    ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.MakeIterator());
    Element element;
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = iterator->Next(&element);
    EXPECT_THAT(more.status(), StatusIs(code, HasSubstr(message)));
  };
  fails(GroupByWindow(FailAt(Stream(5), 3), options, {{DType::kInt64, {}}}),
        absl::StatusCode::kDataLoss, "bad record");
  fails(GroupByWindow(Stream(5), options, kBatches),
        absl::StatusCode::kInvalidArgument,
        "reduce() made a dataset of {int64[]} for key 0; expected {int64[?]}");
  GroupByWindowOptions of_zero = options;
  of_zero.window_size = 0;
  of_zero.window_size_of = [](int64_t) { return 0; };
  fails(GroupByWindow(Stream(5), of_zero, {{DType::kInt64, {}}}),
        absl::StatusCode::kInvalidArgument, "window_size_of(0) is 0");
}

TEST(GroupByWindow, RefusesWhatIsMissing) {
  const auto status = [](const GroupByWindowOptions& options) {
    return GroupByWindow(Stream(5), options, kBatches).status();
  };
  const auto reduce = [](int64_t, const Dataset& window) { return window; };
  EXPECT_THAT(status({.reduce = reduce, .window_size = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("key_of is missing")));
  EXPECT_THAT(status({.key_of = Modulo3, .window_size = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("reduce is missing")));
  EXPECT_THAT(status({.key_of = Modulo3, .reduce = reduce}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 0 without window_size_of")));
}

}  // namespace
}  // namespace muster
