#include "worker/client/step_signature.h"

#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/op_registry.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const TensorType kVector = {DType::kFloat32, {2}};

Graph Build(const std::vector<Attributes>& parameters) {
  static const OpRegistry* const registry = new OpRegistry;
  GraphBuilder builder(registry, "step");
  for (const Attributes& attributes : parameters) {
    builder.Parameter("p", kVector, attributes);
  }
  return *std::move(builder).Build();
}

TEST(StepSignatureTest, DistinguishesTensorsAndIterators) {
  ASSERT_OK_AND_ASSIGN(
      const StepSignature signature,
      StepSignature::Create(Build({
          ToAttributes({.argument = 1, .element = 0, .component = 0}),
          ToAttributes({.argument = 0}),
          ToAttributes({.argument = 1, .element = 1, .component = 2}),
      })));
  ASSERT_EQ(signature.parameters().size(), 3u);
  EXPECT_EQ(signature.parameters()[0].element, 0);
  EXPECT_EQ(signature.parameters()[1].element, -1);
  EXPECT_EQ(signature.parameters()[2].component, 2);
  ASSERT_EQ(signature.arguments().size(), 2u);
  EXPECT_EQ(signature.arguments()[0].element_count, 0);
  EXPECT_EQ(signature.arguments()[1].element_count, 2);
  EXPECT_EQ(signature.arguments()[1].component_count, 3);
}

TEST(StepSignatureTest, RejectsAParameterWithoutSource) {
  EXPECT_THAT(
      StepSignature::Create(Build({Attributes()})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("argument")));
}

TEST(StepSignatureTest, RejectsPositionsOutOfRange) {
  for (const int position : {-1, 4096, 1 << 30}) {
    EXPECT_THAT(
        StepSignature::Create(Build({ToAttributes({.argument = position})})),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("argument is")));
  }
  EXPECT_THAT(StepSignature::Create(Build({ToAttributes(
                  {.argument = 0, .element = 0, .component = -1})})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("component is -1")));
}

TEST(StepSignatureTest, RejectsAnArgumentOfTwoKinds) {
  EXPECT_THAT(StepSignature::Create(
                  Build({ToAttributes({.argument = 0}),
                         ToAttributes({.argument = 0, .element = 0})})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("both a tensor and an iterator")));
}

TEST(StepSignatureTest, StepOverADatasetTakesOneElementOfOneIterator) {
  ASSERT_OK_AND_ASSIGN(const StepSignature signature,
                       StepSignature::Create(FeedFromIterator(
                           Build({Attributes(), Attributes()}))));
  ASSERT_EQ(signature.arguments().size(), 1u);
  EXPECT_EQ(signature.arguments()[0].element_count, 1);
  EXPECT_EQ(signature.arguments()[0].component_count, 2);
  EXPECT_EQ(signature.parameters()[1].component, 1);
}

}  // namespace
}  // namespace muster
