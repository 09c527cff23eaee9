#include "common/learn/nn/structure.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string>& Own() {
  static const auto& kNames = *new std::vector<std::string>{"a", "b", "c"};
  return kNames;
}

TEST(StructureTest, OneLeafIsNoList) {
  EXPECT_TRUE(Structure().is_leaf());
  EXPECT_TRUE(Structure::Flat(1).is_leaf());
  EXPECT_EQ(Structure::Flat(3).leaf_count(), 3u);
  EXPECT_THAT(Structure().LeafNames({"a"}), ElementsAre("a"));
  EXPECT_THAT(Structure::List({Structure()}).LeafNames({"a"}),
              ElementsAre("a"));
}

TEST(StructureTest, KeysAreAscending) {
  const Structure structure = Structure::Dictionary(
      {{"up", Structure()}, {"down", Structure::Flat(2)}});
  EXPECT_THAT(structure.keys(), ElementsAre("down", "up"));
  EXPECT_EQ(structure.children()[0].leaf_count(), 2u);
}

// As keras.Model.fit() calls the losses of outputs.
TEST(StructureTest, LeavesAreCalledByKeysAndOwnNames) {
  EXPECT_THAT(Structure::Flat(3).LeafNames(Own()), ElementsAre("a", "b", "c"));
  EXPECT_THAT(
      Structure::Dictionary({{"up", Structure()}, {"down", Structure::Flat(2)}})
          .LeafNames(Own()),
      ElementsAre("down/a", "down/b", "up"));
  EXPECT_THAT(
      Structure::List({Structure::Flat(2), Structure()}).LeafNames(Own()),
      ElementsAre("0/a", "0/b", "c"));
  EXPECT_THAT(
      Structure::Dictionary(
          {{"z", Structure::Dictionary({{"two", {}}, {"one", {}}})}, {"y", {}}})
          .LeafNames(Own()),
      ElementsAre("y", "z/one", "z/two"));
}

}  // namespace
}  // namespace muster
