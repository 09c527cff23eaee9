#include "common/learn/train/model_summary.h"

#include <string>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/sequential.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

void Build(const LayerPtr& model) {
  model->SetPath("");
  GraphBuilder builder(&BuiltinOps(), "test");
  std::vector<Value> inputs;
  for (const TensorType& type : model->input_types()) {
    inputs.push_back(builder.Parameter("x", type));
  }
  model->CallAll(inputs);
  EXPECT_OK(builder.status());
}

// The text is the output of Keras for the same model.
TEST(ModelSummaryTest, SaysWhereInputsComeFrom) {
  const LayerOutput a = Input({4}, {.name = "a"});
  const LayerOutput b = Input({4});
  const LayerPtr dense = Dense(4);
  const LayerOutput x = dense(a);
  const LayerOutput y = dense(b);
  const LayerOutput z = Concatenate()({x, y});
  const LayerOutput sum = Add()({x, y});
  const LayerPtr frozen = Dense(1);
  const LayerPtr model = Functional(
      {a, b},
      {Dense(3, {.name = "a_very_long_name_of_a_layer_that_wraps"})(z),
       frozen(sum)},
      {.name = "two"});
  frozen->set_trainable(false);
  Build(model);
  EXPECT_EQ(SummarizeModel(*model), R"(Model: "two"
┏━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┓
┃ Layer (type)        ┃ Output Shape      ┃    Param # ┃ Connected to      ┃
┡━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━┩
│ a (InputLayer)      │ (None, 4)         │          0 │ -                 │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ input_layer         │ (None, 4)         │          0 │ -                 │
│ (InputLayer)        │                   │            │                   │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ dense (Dense)       │ (None, 4)         │         20 │ a[0][0],          │
│                     │                   │            │ input_layer[0][0] │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ concatenate         │ (None, 8)         │          0 │ dense[0][0],      │
│ (Concatenate)       │                   │            │ dense[1][0]       │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ add (Add)           │ (None, 4)         │          0 │ dense[0][0],      │
│                     │                   │            │ dense[1][0]       │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ a_very_long_name_o… │ (None, 3)         │         27 │ concatenate[0][0] │
│ (Dense)             │                   │            │                   │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ dense_1 (Dense)     │ (None, 1)         │          5 │ add[0][0]         │
└─────────────────────┴───────────────────┴────────────┴───────────────────┘
 Total params: 52 (208.00 B)
 Trainable params: 47 (188.00 B)
 Non-trainable params: 5 (20.00 B)
)");
}

TEST(ModelSummaryTest, ChainsNeedNoConnections) {
  const LayerOutput in = Input({2, 2});
  const LayerPtr inner = Sequential({Dense(3), Dense(2)});
  const LayerPtr model = Functional(in, inner(Flatten()(in)));
  EXPECT_THAT(SummarizeModel(*model), HasSubstr("│   0 (unbuilt) │"));
  Build(model);
  EXPECT_EQ(SummarizeModel(*model), R"(Model: "functional"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ input_layer (InputLayer)        │ (None, 2, 2)           │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ flatten (Flatten)               │ (None, 4)              │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ sequential (Sequential)         │ (None, 2)              │            23 │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 23 (92.00 B)
 Trainable params: 23 (92.00 B)
 Non-trainable params: 0 (0.00 B)
)");
}

}  // namespace
}  // namespace muster
