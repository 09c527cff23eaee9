#include "common/compute/variables/program_constraint.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/programs/compiled/program_compiler.h"
#include "common/compute/programs/program.h"
#include "common/compute/variables/constraint.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/place.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The absolute value of variables of 3 elements.
proto::Constraint Absolute() {
  const TensorType type = {DType::kFloat32, {3}};
  Program program;
  program.name = "absolute";
  program.types = {{type}, {type}};
  program.variants.push_back(
      {program.types,
       "func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
       "  %0 = stablehlo.abs %x : tensor<3xf32>\n"
       "  return %0 : tensor<3xf32>\n}",
       ""});
  proto::Constraint constraint;
  constraint.set_program(program.Encode());
  return constraint;
}

TEST(ProgramConstraintTest, RunsTheProgram) {
  const char* const plugin = std::getenv(internal::kPluginVariable);
  if (plugin == nullptr || *plugin == '\0') {
    GTEST_SKIP() << "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for CPUs: "
                    "export $(tests/setup_tools.sh)";
  }
  ASSERT_OK(PrepareConstraint(Absolute(), {DType::kFloat32, {3}}, Place()));
  std::vector<float> variable = {-1, 2, -3};
  ApplyConstraint(Absolute(), {3}, variable.data());
  EXPECT_THAT(variable, ElementsAre(1, 2, 3));
}

TEST(ProgramConstraintTest, RefusesOtherVariables) {
  EXPECT_OK(CheckConstraint(Absolute(), {3}));
  EXPECT_TRUE(NeedsAllRows(Absolute(), 1));
  EXPECT_THAT(CheckConstraint(Absolute(), {4}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("one input and one output float32[4]")));
  EXPECT_THAT(PrepareConstraint(Absolute(), {DType::kFloat64, {3}}, Place()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is for float32, not for float64[3]")));
  EXPECT_THAT(PrepareConstraint(Absolute(), {DType::kFloat32, {3}},
                                {PlaceKind::kDevice, 0}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("run on CPUs only")));
  proto::Constraint text;
  text.set_program("x");
  EXPECT_THAT(CheckConstraint(text, {3}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
