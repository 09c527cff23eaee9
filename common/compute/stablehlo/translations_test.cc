#include "common/compute/stablehlo/translations.h"

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/stablehlo/graph_translator.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HloTranslationsTest, EveryOpHasATranslationOrAReason) {
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (schema->name == kParameterOp || schema->name == kConstantOp) continue;
    EXPECT_NE(FindHloTranslation(schema->name), nullptr)
        << schema->name << " has no entry in translations.cc: translate it to "
        << "StableHLO, or say in `refusal` why that cannot be done";
  }
}

TEST(HloTranslationsTest, EntriesAreOfOpsInTheirOrder) {
  absl::string_view last;
  for (const HloTranslation& entry : HloTranslations()) {
    const OpSchema* const schema = BuiltinOps().Find(entry.op);
    ASSERT_NE(schema, nullptr) << "there is no op " << entry.op;
    EXPECT_LT(last, entry.op);
    last = entry.op;
    const int ways =
        (entry.one == nullptr ? 0 : 1) + (entry.general == nullptr ? 0 : 1) +
        (entry.is_variable ? 1 : 0) + (entry.refusal.empty() ? 0 : 1);
    EXPECT_EQ(ways, 1) << entry.op;
    EXPECT_EQ(entry.is_variable, schema->uses_variable() ||
                                     schema->effect == OpEffect::kDescribeStep)
        << entry.op;
  }
}

TEST(GraphTranslatorTest, RefusalNamesOpAndNode) {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x = builder.Parameter("x", {DType::kFloat32, {2, 3}});
  const GraphBuilder::NameScope scope(&builder, "debug");
  builder.AddResult(Print(x, "x"));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  EXPECT_THAT(GraphToStableHlo(graph),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("Print \"debug/"),
                             HasSubstr("a device cannot print"))));
}

TEST(GraphTranslatorTest, RefusesStrings) {
  GraphBuilder builder(&BuiltinOps(), "step");
  builder.AddResult(builder.Parameter("text", {DType::kString, {2}}));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  EXPECT_THAT(GraphToStableHlo(graph),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("Parameter"), HasSubstr("no strings"))));
}

TEST(GraphTranslatorTest, WritesOneFunction) {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x = builder.Parameter("x", {DType::kFloat32, {2, 3}});
  builder.AddResult(Sum(x * x, {1}));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(const std::string module, GraphToStableHlo(graph));
  EXPECT_THAT(
      module,
      AllOf(HasSubstr("@main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>)"),
            HasSubstr("\"stablehlo.multiply\"(%arg0, %arg0)"),
            HasSubstr("dimensions = array<i64: 1>")));
}

}  // namespace
}  // namespace muster
