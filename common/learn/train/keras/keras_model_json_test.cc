#include "common/learn/train/keras/keras_model_json.h"

#include <string>
#include <vector>

#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/time_distributed.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/structure.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using Json = nlohmann::json;

Json JsonOf(const Layer& model) {
  return Json::parse(KerasModelJson(model).value());
}

std::vector<std::string> NamesOf(const Json& model) {
  std::vector<std::string> names;
  for (const Json& layer : model["config"]["layers"]) {
    names.push_back(layer["config"]["name"]);
  }
  return names;
}

TEST(KerasModelJsonTest, SequentialBeginsWithItsInput) {
  const LayerPtr model = Sequential({Input({4}), Dense(3), Dense(2)});
  model->SetPath("");
  const Json json = JsonOf(*model);
  EXPECT_EQ(json["class_name"], "Sequential");
  EXPECT_EQ(NamesOf(json),
            std::vector<std::string>({"input_layer", "dense", "dense_1"}));
  EXPECT_EQ(json["config"]["layers"][0]["config"]["batch_shape"],
            Json::parse("[null, 4]"));
}

TEST(KerasModelJsonTest, FunctionalListsTheInputsOfEachLayer) {
  const LayerOutput x = Input({4}, {.name = "x"});
  const LayerPtr shared = Dense(4, {.name = "shared"});
  const LayerPtr model =
      Functional(x, Dense(1, {.name = "y"})(shared(shared(x))));
  const Json json = JsonOf(*model);
  EXPECT_EQ(json["class_name"], "Functional");
  EXPECT_EQ(NamesOf(json), std::vector<std::string>({"x", "shared", "y"}));
  const Json& layers = json["config"]["layers"];
  EXPECT_EQ(layers[0]["inbound_nodes"], Json::array());
  ASSERT_EQ(layers[1]["inbound_nodes"].size(), 2u);
  EXPECT_EQ(layers[1]["inbound_nodes"][1]["args"][0]["config"]["keras_history"],
            Json::parse(R"(["shared", 0, 0])"));
  EXPECT_EQ(layers[2]["inbound_nodes"][0]["args"][0]["config"]["keras_history"],
            Json::parse(R"(["shared", 1, 0])"));
  EXPECT_EQ(json["config"]["input_layers"], Json::parse(R"(["x", 0, 0])"));
  EXPECT_EQ(json["config"]["output_layers"], Json::parse(R"(["y", 0, 0])"));
}

TEST(KerasModelJsonTest, CallsAreNumberedInTheOrderInWhichTheyWereMade) {
  const LayerOutput x = Input({4}, {.name = "x"});
  const LayerPtr shared = Dense(4, {.name = "shared"});
  shared(x);  // In no model.
  const LayerOutput first = shared(Dense(4, {.name = "dense"})(x));
  const LayerOutput second = shared(x);
  const LayerPtr model =
      Functional(x, Concatenate({.name = "y"})({second, first}));
  const Json json = JsonOf(*model);
  const auto source = [](const Json& tensor) {
    return tensor["config"]["keras_history"];
  };
  const Json layers = json["config"]["layers"];
  ASSERT_EQ(NamesOf(json),
            std::vector<std::string>({"x", "shared", "dense", "y"}));
  const Json& nodes = layers[1]["inbound_nodes"];
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(source(nodes[0]["args"][0]), Json::parse(R"(["dense", 0, 0])"));
  EXPECT_EQ(source(nodes[1]["args"][0]), Json::parse(R"(["x", 0, 0])"));
  const Json& merged = layers[3]["inbound_nodes"][0]["args"][0];
  EXPECT_EQ(source(merged[0]), Json::parse(R"(["shared", 1, 0])"));
  EXPECT_EQ(source(merged[1]), Json::parse(R"(["shared", 0, 0])"));
}

TEST(KerasModelJsonTest, LayersHaveTheirHyperparametersAndPolicies) {
  const LayerPtr model = Sequential(
      {Input({4}), Dense(3, {.use_bias = false, .kernel_regularizer = L2(0.5)}),
       Dense(2)});
  model->layers()[0]->set_trainable(false);
  model->layers()[0]->set_dtype_policy(kMixedBfloat16Policy);
  model->SetPath("");
  const Json json = JsonOf(*model);
  const Json& config = json["config"]["layers"][1]["config"];
  EXPECT_EQ(config["units"], 3);
  EXPECT_EQ(config["use_bias"], false);
  EXPECT_EQ(config["kernel_regularizer"]["config"], Json({{"l2", 0.5}}));
  EXPECT_EQ(config["trainable"], false);
  EXPECT_EQ(config["dtype"]["config"]["name"], "mixed_bfloat16");
  model->set_dtype_policy(kMixedFloat16Policy);
  EXPECT_EQ(JsonOf(*model)["config"]["dtype"]["config"]["name"],
            "mixed_float16");
}

TEST(KerasModelJsonTest, InitialStatesAreAnArgumentOfTheirOwn) {
  const LayerOutput x = Input({4, 2}, {.name = "x"});
  const LayerOutput state = Input({3}, {.name = "state"});
  const LayerPtr model =
      Functional({x, state}, GRU(3, {.name = "gru"})({x, state}));
  const Json node = JsonOf(*model)["config"]["layers"][2]["inbound_nodes"][0];
  ASSERT_EQ(node["args"].size(), 1u);
  EXPECT_EQ(node["args"][0]["config"]["keras_history"][0], "x");
  ASSERT_EQ(node["kwargs"]["initial_state"].size(), 1u);
  EXPECT_EQ(node["kwargs"]["initial_state"][0]["config"]["keras_history"][0],
            "state");
}

TEST(KerasModelJsonTest, SpatialDropoutHasNoArgumentTrainable) {
  for (const LayerKind& kind : kLayerKinds) {
    if (std::string(kind.name) != "spatial_dropout1d") continue;
    const LayerPtr model = Sequential({Input({4, 2}), kind.make()});
    model->SetPath("");
    const Json config = JsonOf(*model)["config"]["layers"][1]["config"];
    EXPECT_EQ(config["rate"], 0);
    EXPECT_FALSE(config.contains("trainable"));
    return;
  }
  FAIL() << "there is no such layer";
}

TEST(KerasModelJsonTest, InputsAndOutputsKeepTheirStructure) {
  const LayerOutput x = Input({4}, {.name = "x"});
  const LayerOutput z = Input({4}, {.name = "z"});
  const LayerOutput both = Add({.name = "both"})({x, z});
  const LayerOutput y = Dense(1, {.name = "y"})(both);
  const LayerPtrTo<FunctionalLayer> inner = Functional(
      {x, z}, {y},
      {.name = "inner",
       .input_structure = Structure::Dictionary({{"one", {}}, {"two", {}}}),
       .output_structure = Structure::List({Structure()})});
  const Json config = JsonOf(*inner)["config"];
  EXPECT_EQ(config["input_layers"],
            Json::parse(R"({"one": ["x", 0, 0], "two": ["z", 0, 0]})"));
  EXPECT_EQ(config["output_layers"], Json::parse(R"([["y", 0, 0]])"));
  // So does a call of the model.
  const LayerOutput p = Input({4}, {.name = "p"});
  const LayerPtr outer = Functional(p, LayerPtr(inner)({p, p}));
  const Json args =
      JsonOf(*outer)["config"]["layers"][1]["inbound_nodes"][0]["args"];
  ASSERT_EQ(args.size(), 1u);
  EXPECT_EQ(args[0]["two"]["config"]["keras_history"],
            Json::parse(R"(["p", 0, 0])"));
}

TEST(KerasModelJsonTest, LayersInSeveralWrappersHaveANumber) {
  const LayerOutput x = Input({3, 2}, {.name = "x"});
  const LayerPtr shared = Dense(2, {.name = "shared"});
  const LayerPtr own = Dense(2, {.name = "own"});
  LayerOutput y = x;
  for (const LayerPtr& layer : {shared, shared, own}) {
    y = TimeDistributed(layer)(y);
  }
  const LayerPtr model = Functional(x, y);
  model->SetPath("");
  const Json layers = JsonOf(*model)["config"]["layers"];
  const auto id_of = [&](size_t index) {
    return layers[index]["config"]["layer"].value("shared_object_id", -1);
  };
  EXPECT_GE(id_of(1), 0);
  EXPECT_EQ(id_of(1), id_of(2));
  EXPECT_EQ(id_of(3), -1);
}

TEST(KerasModelJsonTest, OtherLayersAreNoModels) {
  EXPECT_FALSE(KerasModelJson(*Dense(1)).has_value());
}

}  // namespace
}  // namespace muster
