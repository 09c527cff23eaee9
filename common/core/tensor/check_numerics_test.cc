#include "common/core/tensor/check_numerics.h"

#include <cmath>
#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(CheckFiniteTest, CountsNonFiniteElementsAndNamesTheFirst) {
  EXPECT_OK(CheckFinite(Tensor::FromValues<float>({2}, {1e38f, -1e38f})));
  EXPECT_THAT(
      CheckFinite(Tensor::FromValues<float>({2, 2}, {1, -INFINITY, 2, NAN})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("2 of 4 elements of float32[2,2] are not finite; the "
                         "first is -inf, element 1")));
}

TEST(CheckFiniteTest, LooksAtEveryFloatingType) {
  for (const DType dtype :
       {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    EXPECT_OK(CheckFinite(Tensor::Full(dtype, {3}, 1)));
    EXPECT_THAT(CheckFinite(Tensor::Full(dtype, {3}, NAN)),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << DTypeString(dtype);
  }
}

TEST(CheckFiniteTest, OtherTypesAreFine) {
  EXPECT_OK(CheckFinite(Tensor::Full(DType::kInt64, {2}, 7)));
  EXPECT_OK(CheckFinite(Tensor::Scalar<std::string>("nan")));
}

}  // namespace
}  // namespace muster
