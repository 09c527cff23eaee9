// How layers propagate masks.

#include "common/learn/nn/masks.h"

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/image/rescaling.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/nn/layers/relu.h"
#include "common/learn/nn/layers/reshape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two examples of two positions with one channel.
Tensor Filled(double value) {
  return Tensor::Full(DType::kFloat32, {2, 2, 1}, value);
}

Tensor MaskOf(bool a, bool b, bool c, bool d) {
  return Tensor::FromValues<bool>({2, 2}, {a, b, c, d});
}

// Returns the mask of the layer's output for inputs with these masks. An
// invalid tensor stands for no mask; {} is returned if the output has none.
absl::StatusOr<std::vector<bool>> MaskAfter(const LayerPtr& layer,
                                            const std::vector<Tensor>& masks) {
  std::vector<Tensor> arguments(masks.size(), Filled(1));
  for (const Tensor& mask : masks) {
    arguments.push_back(mask.IsValid() ? mask : MaskOf(1, 1, 1, 1));
  }
  bool has_mask = false;
  const auto call = [&](const std::vector<Value>& values) {
    Masks all;
    for (size_t i = 0; i < masks.size(); ++i) {
      if (masks[i].IsValid()) all.Set(values[i], values[masks.size() + i]);
    }
    const std::vector<Value> inputs(values.begin(),
                                    values.begin() + masks.size());
    const Value y = (*layer)(inputs, {.masks = &all});
    const Value mask = all.Find(y);
    has_mask = mask.ok();
    return has_mask ? mask : y;
  };
  const absl::StatusOr<Tensor> result = Evaluate(call, arguments);
  if (!result.ok()) return result.status();
  if (!has_mask) return std::vector<bool>();
  return std::vector<bool>(result->flat<bool>().begin(),
                           result->flat<bool>().end());
}

TEST(MasksTest, FindsNoMaskUnlessOneWasSet) {
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value x = builder.Parameter("x", {DType::kFloat32, {2, 2}});
  const Value mask = builder.Parameter("mask", {DType::kBool, {2, 2}});
  Masks masks;
  EXPECT_FALSE(masks.Find(x).ok());
  masks.Set(x, mask);
  EXPECT_EQ(masks.Find(x).output().node, mask.output().node);
  EXPECT_FALSE(masks.Find(mask).ok());
  EXPECT_FALSE(masks.Find(Value()).ok());
}

TEST(MasksTest, PositionwiseLayersKeepTheMask) {
  const Tensor mask = MaskOf(1, 0, 0, 1);
  for (const LayerPtr& layer :
       {ReLU(), Rescaling(2.0),
        Normalization({.mean = {0}, .variance = {1}})}) {
    EXPECT_THAT(MaskAfter(layer, {mask}),
                IsOkAndHolds(ElementsAre(true, false, false, true)))
        << layer->kind();
  }
  EXPECT_THAT(MaskAfter(Reshape({1, 2}), {mask}), IsOkAndHolds(ElementsAre()));
}

TEST(MasksTest, MergedPositionsAreMaskedWhereAllInputsAre) {
  const Tensor a = MaskOf(1, 0, 0, 1);
  const Tensor b = MaskOf(1, 1, 0, 0);
  for (const LayerPtr& layer : {Add(), Multiply(), Concatenate()}) {
    EXPECT_THAT(MaskAfter(layer, {a, b}),
                IsOkAndHolds(ElementsAre(true, true, false, true)))
        << layer->kind();
    EXPECT_THAT(MaskAfter(layer, {a, Tensor()}), IsOkAndHolds(ElementsAre()))
        << layer->kind();
    EXPECT_THAT(MaskAfter(layer, {Tensor(), a}), IsOkAndHolds(ElementsAre()))
        << layer->kind();
  }
}

TEST(MasksTest, ConcatenatesMasksAlongTime) {
  const Tensor a = MaskOf(1, 0, 0, 1);
  const Tensor b = MaskOf(0, 0, 1, 0);
  const LayerPtr join = Concatenate({.axis = 1});
  EXPECT_THAT(MaskAfter(join, {a, b}),
              IsOkAndHolds(ElementsAre(true, false, false, false,  //
                                       false, true, true, false)));
  EXPECT_THAT(MaskAfter(Concatenate({.axis = -2}), {Tensor(), b}),
              IsOkAndHolds(ElementsAre(true, true, false, false,  //
                                       true, true, true, false)));
  EXPECT_THAT(MaskAfter(join, {Tensor(), Tensor()}),
              IsOkAndHolds(ElementsAre()));
}

TEST(MasksTest, BatchNormalizationRejectsAMaskOfExamples) {
  EXPECT_THAT(MaskAfter(BatchNormalization(),
                        {Tensor::FromValues<bool>({2}, {true, false})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected a mask with one axis less than the "
                                 "input, float32[2,2,1], got bool[2]")));
}

}  // namespace
}  // namespace muster
