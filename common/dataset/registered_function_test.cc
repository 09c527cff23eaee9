#include "common/dataset/registered_function.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/codec/dataset_codec.h"
#include "common/dataset/dataset.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Multiplies int64 scalars by the argument.
absl::StatusOr<RegisteredFunction> MakeScale(
    absl::string_view argument, absl::Span<const TensorType> elements) {
  int64_t factor = 0;
  if (!absl::SimpleAtoi(argument, &factor)) {
    return absl::InvalidArgumentError("expected a factor");
  }
  return RegisteredFunction{
      [factor](Element element) -> absl::StatusOr<Element> {
        return Element{Tensor::FromValues<int64_t>(
            {}, {factor * element[0].scalar<int64_t>()})};
      },
      {elements.begin(), elements.end()}};
}

const bool kHasScale = RegisterElementFunction("test_scale", MakeScale);
const bool kHasTwin = RegisterElementFunction("test_twin", MakeScale);
const bool kHasSecondTwin = RegisterElementFunction("test_twin", MakeScale);

TEST(RegisteredFunctionTest, MapsElements) {
  EXPECT_TRUE(kHasScale);
  const Dataset scaled =
      MapRegistered(Dataset::Range(4), "test_scale", "10", {.thread_count = 2});
  EXPECT_THAT(Numbers(scaled), ElementsAre(0, 10, 20, 30));
}

TEST(RegisteredFunctionTest, ADatasetCanBeSent) {
  const Dataset scaled =
      MapRegistered(Dataset::Range(4), "test_scale", "-3").Skip(1);
  ASSERT_OK_AND_ASSIGN(const proto::Dataset encoded, EncodeDataset(scaled));
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  EXPECT_THAT(Numbers(decoded), ElementsAre(-3, -6, -9));
}

TEST(RegisteredFunctionTest, AProcessWithoutTheFunctionSaysSo) {
  ASSERT_OK_AND_ASSIGN(
      proto::Dataset encoded,
      EncodeDataset(MapRegistered(Dataset::Range(4), "test_scale", "2")));
  for (proto::DatasetStage& stage : *encoded.mutable_stages()) {
    if (stage.has_map()) {
      stage.mutable_map()->mutable_registered()->set_name("elsewhere");
    }
  }
  EXPECT_THAT(DecodeDataset(encoded), StatusIs(absl::StatusCode::kNotFound,
                                               AllOf(HasSubstr("\"elsewhere\""),
                                                     HasSubstr("test_scale"))));
}

TEST(RegisteredFunctionTest, MistakesAreNamed) {
  EXPECT_THAT(MapRegistered(Dataset::Range(4), "test_scale", "x").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"test_scale\" of \"x\""),
                             HasSubstr("expected a factor"))));
  EXPECT_FALSE(kHasSecondTwin);
  EXPECT_THAT(MapRegistered(Dataset::Range(4), "test_twin", "1").status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("2")));
  EXPECT_TRUE(kHasTwin);
}

}  // namespace
}  // namespace muster
