#include "common/learn/strategy/input/pinned_batches.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/place.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

class PinnedBatchesTest : public ::testing::Test {
 protected:
  PinnedBatchesTest() : machine_({}) {
    auto device = Device::Create(&machine_.driver(),
                                 {.memory = {.limit_bytes = 8 << 20}});
    EXPECT_OK(device);
    device_ = *std::move(device);
  }

  SimulatedMachine machine_;
  std::unique_ptr<Device> device_;
};

TEST_F(PinnedBatchesTest, ElementsAreThoseOfTheDatasetInPinnedMemory) {
  const Dataset numbers = Dataset::Range(7).Batch(3);
  ASSERT_OK_AND_ASSIGN(const auto expected, numbers.MakeIterator());
  ASSERT_OK_AND_ASSIGN(const auto pinned,
                       InPinnedMemory(numbers, device_.get()).MakeIterator());
  for (int batch = 0; batch < 3; ++batch) {
    Element wanted;
    Element element;
    ASSERT_THAT(expected->Next(&wanted), IsOkAndHolds(true));
    ASSERT_THAT(pinned->Next(&element), IsOkAndHolds(true));
    EXPECT_EQ(element[0].place().kind, PlaceKind::kPinnedHost);
    EXPECT_TRUE(BitwiseEqual(element[0], wanted[0]));
  }
  Element none;
  EXPECT_THAT(pinned->Next(&none), IsOkAndHolds(false));
}

// No multiple of what a thread copies.
TEST_F(PinnedBatchesTest, LargeElementsAreCopiedWhole) {
  Tensor numbers(DType::kInt64, {(5 << 20) / 8 + 3});
  int64_t next = 0;
  for (int64_t& number : numbers.mutable_flat<int64_t>()) number = next++;
  ASSERT_OK_AND_ASSIGN(
      const auto pinned,
      InPinnedMemory(Dataset::FromTensors({numbers}).Repeat(2), device_.get())
          .MakeIterator());
  for (int i = 0; i < 2; ++i) {
    Element element;
    ASSERT_THAT(pinned->Next(&element), IsOkAndHolds(true));
    EXPECT_EQ(element[0].place().kind, PlaceKind::kPinnedHost);
    EXPECT_TRUE(BitwiseEqual(element[0], numbers));
  }
}

TEST_F(PinnedBatchesTest, StringsStayWhereTheyAre) {
  const Dataset words = Dataset::FromTensors(
      {Tensor::FromValues<std::string>({2}, {"one", "two"})});
  ASSERT_OK_AND_ASSIGN(const auto pinned,
                       InPinnedMemory(words, device_.get()).MakeIterator());
  Element element;
  ASSERT_THAT(pinned->Next(&element), IsOkAndHolds(true));
  EXPECT_EQ(element[0].flat<std::string>()[1], "two");
}

TEST_F(PinnedBatchesTest, PinsNoNewMemoryForEachElement) {
  const Dataset data =
      InPinnedMemory(Dataset::Range(100), device_.get()).Prefetch(2);
  ASSERT_OK_AND_ASSIGN(const auto elements, data.MakeIterator());
  Element element;
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(elements->Next(&element), IsOkAndHolds(true));
    EXPECT_EQ(element[0].scalar<int64_t>(), i);
  }
  // Of the buffer, the thread and the caller.
  EXPECT_LE(machine_.counts()["cuMemHostAlloc"], 2 * 2 + 2);
}

}  // namespace
}  // namespace muster
