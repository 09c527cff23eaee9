#include "common/learn/train/weights_hash.h"

#include <string>

#include "common/core/tensor/tensor.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(WeightsHashTest, IsSha256OfNamesTypesAndBytes) {
  // printf 'b|float32|[1]|\0\0\200?' | sha256sum
  EXPECT_EQ(HashWeights({{"b", Tensor::FromValues<float>({1}, {1})}}),
            "9d8097734e7f65e466104475d14b899fa22f5247b8bf549a930e61ec663c9821");
  // The hash of an empty input.
  EXPECT_EQ(HashWeights({}),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(WeightsHashTest, TellsShapesAndNamesApart) {
  const Tensor flat = Tensor::FromValues<float>({2}, {1, 2});
  EXPECT_NE(HashWeights({{"a", flat}}), HashWeights({{"b", flat}}));
  EXPECT_NE(HashWeights({{"a", flat}}),
            HashWeights({{"a", flat.Reshaped({2, 1})}}));
}

}  // namespace
}  // namespace muster
