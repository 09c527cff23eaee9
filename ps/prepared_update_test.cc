#include "ps/prepared_update.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "common/compute/variables/update_kind.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

PreparedUpdate UpdateOfRows(UpdateKind kind, std::vector<int64_t> rows,
                            const Tensor& value) {
  return {.kind = kind,
          .value = ReceivedTensor::FromTensor(value),
          .rows = std::move(rows)};
}

std::vector<float> ValuesOf(const PreparedUpdate& update) {
  const Tensor value = update.value.ToTensor().value();
  const auto flat = value.flat<float>();
  return {flat.begin(), flat.end()};
}

TEST(PreparedUpdateTest, SumsRepeatedRowsOfAGradient) {
  PreparedUpdate update =
      UpdateOfRows(UpdateKind::kApplySparseGradient, {5, 2, 5},
                   Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 10, 20}));
  ASSERT_OK(PutRowsInOrder(2, &update));
  EXPECT_THAT(update.rows, ElementsAre(2, 5));
  EXPECT_THAT(ValuesOf(update), ElementsAre(3, 4, 11, 22));
}

TEST(PreparedUpdateTest, KeepsRepeatedRowsOfOthersInTheirOrder) {
  PreparedUpdate update =
      UpdateOfRows(UpdateKind::kScatterUpdate, {5, 2, 5},
                   Tensor::FromValues<float>({3, 1}, {1, 3, 10}));
  ASSERT_OK(PutRowsInOrder(1, &update));
  EXPECT_THAT(update.rows, ElementsAre(2, 5, 5));
  EXPECT_THAT(ValuesOf(update), ElementsAre(3, 1, 10));
}

TEST(PreparedUpdateTest, AddsAndSubtracts) {
  std::vector<int8_t> wrapped = {std::numeric_limits<int8_t>::max(), 1};
  const std::vector<int8_t> ones = {1, 1};
  AddInto(2, ones.data(), /*subtract=*/false, wrapped.data());
  EXPECT_THAT(wrapped, ElementsAre(std::numeric_limits<int8_t>::min(), 2));
  AddInto(2, ones.data(), /*subtract=*/true, wrapped.data());
  EXPECT_THAT(wrapped, ElementsAre(std::numeric_limits<int8_t>::max(), 1));
}

}  // namespace
}  // namespace muster
