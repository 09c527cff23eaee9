#include "common/compute/ops/builtin_ops.h"

#include <set>
#include <string>
#include <vector>

#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Plugins compute programs.
TEST(BuiltinOpsTest, EveryComputingOpHasAReferenceKernel) {
  const std::vector<std::string> kernels = ReferenceKernels().ops();
  const std::set<std::string> have(kernels.begin(), kernels.end());
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (!schema->has_kernel() || schema->reads == OpReads::kPlugin) continue;
    EXPECT_TRUE(have.contains(schema->name)) << schema->name;
  }
}

TEST(BuiltinOpsTest, EveryReferenceKernelBelongsToAnOp) {
  for (const std::string& op : ReferenceKernels().ops()) {
    EXPECT_NE(BuiltinOps().Find(op), nullptr) << op;
  }
}

TEST(BuiltinOpsTest, ReluGradientsAreOps) {
  std::set<std::string> relus;
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (schema->gradient_by_either.empty()) continue;
    relus.insert(schema->name);
    const OpSchema* const gradient =
        BuiltinOps().Find(schema->gradient_by_either);
    ASSERT_NE(gradient, nullptr) << schema->name;
    EXPECT_EQ(gradient->input_count_min, 2);
    EXPECT_NE(schema->activation_name, nullptr);
  }
  EXPECT_THAT(relus, testing::ElementsAre("Relu", "Relu6"));
}

TEST(BuiltinOpsTest, IntegerOpsHaveNoGradient) {
  for (const char* op : {"ArgMax", "OneHot", "Equal", "FloorDiv", "InTopK"}) {
    ASSERT_NE(BuiltinOps().Find(op), nullptr) << op;
    EXPECT_EQ(BuiltinOps().Find(op)->gradient_rule, nullptr) << op;
  }
}

}  // namespace
}  // namespace muster
