#include "common/compute/variables/checkpoint_names.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(CheckpointNamesTest, TensorFlowFindsVariablesByTheirPath) {
  EXPECT_EQ(VariableValueKey("dense/kernel"),
            "model/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(VariableSlotKey("dense/kernel", "momentum"),
            "model/dense/kernel/.OPTIMIZER_SLOT/optimizer/momentum/"
            ".ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(UpdateCountKey("dense/kernel"),
            "optimizer/update_counts/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE");
}

TEST(CheckpointNamesTest, NamesComeBackFromKeys) {
  for (const std::string name : {"kernel", "dense/kernel", "a.b/c..d/.e"}) {
    EXPECT_EQ(VariableNameOf(VariableValueKey(name)), name);
    for (const std::string slot : {"m", "sum.of/squares"}) {
      EXPECT_EQ(SlotNameOf(name, VariableSlotKey(name, slot)), slot);
    }
  }
}

TEST(CheckpointNamesTest, OtherKeysHaveNoNames) {
  EXPECT_EQ(VariableNameOf(VariableSlotKey("w", "m")), std::nullopt);
  EXPECT_EQ(VariableNameOf(UpdateCountKey("w")), std::nullopt);
  EXPECT_EQ(VariableNameOf("w"), std::nullopt);
  EXPECT_EQ(SlotNameOf("w", VariableValueKey("w")), std::nullopt);
  EXPECT_EQ(SlotNameOf("w", VariableSlotKey("w/x", "m")), std::nullopt);
  EXPECT_EQ(SlotNameOf("w/x", VariableSlotKey("w", "m")), std::nullopt);
}

}  // namespace
}  // namespace muster
