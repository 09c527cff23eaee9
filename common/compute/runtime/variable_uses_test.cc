#include "common/compute/runtime/variable_uses.h"

#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/builtin_ops.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(VariableOpsTest, TheSessionCanExecuteEveryOpThatUsesAVariable) {
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    EXPECT_EQ(FindVariableUpdateOp(schema->name).has_value(),
              schema->effect == OpEffect::kUpdateVariable)
        << schema->name;
    const bool reads =
        schema->name == kReadVariableOp || schema->name == kGatherVariableOp;
    EXPECT_EQ(reads, schema->effect == OpEffect::kReadVariable) << schema->name;
  }
}

}  // namespace
}  // namespace muster
