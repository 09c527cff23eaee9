#include "common/learn/train/onnx/translations.h"

#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/onnx/graph_translator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(OnnxTranslationsTest, EveryOpHasATranslationOrAReason) {
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    EXPECT_NE(FindOnnxTranslation(schema->name), nullptr)
        << schema->name << " has no entry in translations.cc: translate it to "
        << "ONNX, or say in `refusal` why that cannot be done";
  }
}

TEST(OnnxTranslationsTest, EntriesAreOfOpsInTheirOrder) {
  absl::string_view last;
  for (const OnnxTranslation& entry : OnnxTranslations()) {
    EXPECT_NE(BuiltinOps().Find(entry.op), nullptr)
        << "there is no op " << entry.op;
    EXPECT_LT(last, entry.op);
    last = entry.op;
    const int ways = (entry.onnx_op.empty() ? 0 : 1) +
                     (entry.elementwise == nullptr ? 0 : 1) +
                     (entry.general == nullptr ? 0 : 1) +
                     (entry.refusal.empty() ? 0 : 1);
    EXPECT_EQ(ways, 1) << entry.op;
  }
}

TEST(OnnxTranslationsTest, TranslatesElementByElementWhatIsElementwise) {
  for (const OnnxTranslation& entry : OnnxTranslations()) {
    if (entry.onnx_op.empty() && entry.elementwise == nullptr) continue;
    EXPECT_TRUE(BuiltinOps().Find(entry.op)->is_elementwise) << entry.op;
  }
}

TEST(AxisOrderTest, MovesChannels) {
  EXPECT_THAT(ChannelsFirst(4), ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(ChannelsFirst(3), ElementsAre(0, 2, 1));
  EXPECT_THAT(ChannelsFirst(2), ElementsAre(0, 1));
  EXPECT_THAT(WithoutAxes({0, 3, 1, 2}, {1, 2}), ElementsAre(0, 1));
  EXPECT_THAT(WithoutAxes({0, 3, 1, 2}, {1}), ElementsAre(0, 2, 1));
  EXPECT_THAT(PositionsOf({1, 3}, {0, 3, 1, 2}), ElementsAre(1, 2));
}

TEST(AxisOrderTest, TransposesConstants) {
  const Tensor x = Tensor::FromValues<int32_t>({2, 1, 3}, {0, 1, 2, 3, 4, 5});
  const Tensor y = Transposed(x, {2, 0, 1});
  EXPECT_EQ(y.shape(), Shape({3, 2, 1}));
  EXPECT_THAT(y.flat<int32_t>(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_TRUE(BitwiseEqual(Transposed(y, {1, 2, 0}), x));
  EXPECT_TRUE(
      BitwiseEqual(Transposed(Tensor::Scalar(2.0f), {}), Tensor::Scalar(2.0f)));
}

}  // namespace
}  // namespace muster
