#include "common/compute/programs/program.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DType kF32 = DType::kFloat32;

TensorType Rows(int64_t rows) { return {kF32, {rows, 3}}; }

// y = f(x, w) for batches of 4 and 2 examples.
Program Example() {
  const TensorType weight = {kF32, {3}};
  Program program;
  program.name = "scale";
  program.types = {{Rows(Shape::kUnknown), weight}, {Rows(Shape::kUnknown)}};
  program.gradient = {.inputs = {1, 0}, .output_count = 1};
  for (const int64_t rows : {4, 2}) {
    program.variants.push_back(
        {{{Rows(rows), weight}, {Rows(rows)}},
         std::string("code\0of ", 8) + absl::StrCat(rows),
         "gradient"});
  }
  return program;
}

TEST(ProgramTest, KeepsAllPartsWhenEncoded) {
  ASSERT_OK_AND_ASSIGN(const Program decoded,
                       Program::Decode(Example().Encode()));
  EXPECT_EQ(decoded.name, "scale");
  EXPECT_EQ(decoded.types, Example().types);
  ASSERT_TRUE(decoded.gradient.has_value());
  EXPECT_THAT(decoded.gradient->inputs, ElementsAre(1, 0));
  EXPECT_EQ(decoded.gradient->output_count, 1);
  ASSERT_EQ(decoded.variants.size(), 2u);
  EXPECT_EQ(decoded.variants[1].types, Example().variants[1].types);
  EXPECT_EQ(decoded.variants[1].stablehlo, Example().variants[1].stablehlo);
  EXPECT_EQ(decoded.variants[1].gradient_stablehlo, "gradient");
}

TEST(ProgramTest, InfersOutputsOfAnyAndOfEachBatchSize) {
  const TensorType weight = {kF32, {3}};
  const auto outputs = [&](int64_t rows) {
    return Example().InferOutputs({Rows(rows), weight}, false);
  };
  EXPECT_THAT(outputs(Shape::kUnknown),
              IsOkAndHolds(ElementsAre(Rows(Shape::kUnknown))));
  EXPECT_THAT(outputs(2), IsOkAndHolds(ElementsAre(Rows(2))));
  EXPECT_THAT(Example().FindVariant({Rows(2), weight}, false), IsOkAndHolds(1));
  // Tracing may try sizes that no step has.
  EXPECT_THAT(outputs(7), IsOkAndHolds(ElementsAre(Rows(7))));
  EXPECT_THAT(Example().InferOutputs({Rows(2), weight, Rows(2)}, true),
              IsOkAndHolds(ElementsAre(weight, Rows(2))));
}

TEST(ProgramTest, HasEmptyOutputsForAReplicaWithoutExamples) {
  const TensorType weight = {kF32, {3}};
  EXPECT_THAT(Example().InferOutputs({Rows(0), weight}, false),
              IsOkAndHolds(ElementsAre(Rows(0))));
  EXPECT_THAT(Example().InferOutputs({Rows(0), weight, Rows(0)}, true),
              IsOkAndHolds(ElementsAre(weight, Rows(0))));
  EXPECT_TRUE(HasNoExamples(Example().types.inputs, {Rows(0), weight}));
  EXPECT_FALSE(HasNoExamples(Example().types.inputs, {Rows(1), weight}));
}

TEST(ProgramTest, RejectsOtherInputsByTheirTypes) {
  const TensorType weight = {kF32, {3}};
  EXPECT_THAT(
      Example().FindVariant({Rows(7), weight}, false),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("program scale"), HasSubstr("float32[7,3]"),
                     HasSubstr("but for (float32[4,3], float32[3]), "
                               "(float32[2,3], float32[3])"))));
  EXPECT_THAT(Example().InferOutputs({Rows(4), Rows(4)}, false),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("takes (float32[?,3], float32[3]), not "
                                 "(float32[4,3], float32[4,3])")));
  EXPECT_THAT(Example().InferOutputs({Rows(4)}, false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes")));
  Program without = Example();
  without.gradient.reset();
  EXPECT_THAT(without.InferOutputs({Rows(4), weight, Rows(4)}, true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("without a separate gradient")));
}

TEST(ProgramTest, MayReturnTheGradientsOfALoss) {
  const TensorType weight = {kF32, {3}};
  Program program = Example();
  program.gradient = {.inputs = {1}, .is_of_loss = true};
  program.types.outputs.push_back(weight);
  for (Program::Variant& variant : program.variants) {
    variant.types.outputs.push_back(weight);
  }
  ASSERT_OK_AND_ASSIGN(const Program decoded,
                       Program::Decode(program.Encode()));
  ASSERT_TRUE(decoded.gradient.has_value());
  EXPECT_TRUE(decoded.gradient->is_of_loss);
  EXPECT_EQ(decoded.variants[0].gradient_stablehlo, "");
  program.gradient->inputs = {0};
  EXPECT_THAT(Program::Decode(program.Encode()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradient_of_loss: the gradient of input 0 is "
                                 "float32[3]; expected float32[?,3]")));
  program.gradient->inputs = {0, 1};
  EXPECT_THAT(Program::Decode(program.Encode()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rows of a loss, then 2 gradients")));
}

TEST(ProgramTest, NamesTheFieldOfAnInvalidProgram) {
  // Each replaces a part of the valid form.
  const std::vector<std::pair<std::pair<std::string, std::string>, std::string>>
      cases = {
          {{R"("name":"scale")", R"("name":7)"}, "name: expected a string"},
          {{R"("name":"scale",)", ""}, "name: is absent"},
          {{R"("inputs":["float32[?,3]")", R"("inputs":["float31[?,3]")"},
           "inputs: \"float31[?,3]\" is no type"},
          {{R"("gradient_inputs":[1,0])", R"("gradient_inputs":[1,2])"},
           "gradient_inputs: expected a number from 0 to 1, got 2"},
          {{R"("gradient_outputs":1)", R"("gradient_outputs":2)"},
           "gradient_outputs: expected a number from 0 to 1, got 2"},
          {{R"("outputs":["float32[4,3]"])", R"("outputs":["float32[4,5]"])"},
           "variant 0: outputs: expected known extents of (float32[?,3])"},
          {{R"("inputs":["float32[2,3]")", R"("inputs":["float32[?,3]")"},
           "variant 1: inputs: expected known extents"},
          {{R"("stablehlo":")", R"("stablehlo":"*)"},
           "variant 0: stablehlo: expected base64"},
      };
  for (const auto& [change, message] : cases) {
    const std::string valid = Example().Encode();
    std::string changed = valid;
    const size_t at = changed.find(change.first);
    ASSERT_NE(at, std::string::npos) << change.first;
    changed.replace(at, change.first.size(), change.second);
    EXPECT_THAT(
        Program::Decode(changed),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
  for (const char* const text : {"", "[]", "{", "7", "null"}) {
    EXPECT_THAT(Program::Decode(text),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(Program::Decode(std::string(100'000, '[')),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nested too deeply")));
}

TEST(ProgramTest, ParsesTheTextOfTypes) {
  for (const TensorType& type :
       {TensorType{kF32, {}}, TensorType{DType::kInt64, {3}},
        TensorType{DType::kBfloat16, {Shape::kUnknown, 0, 5}}}) {
    EXPECT_THAT(ParseTensorType(type.ToString()), IsOkAndHolds(type));
  }
  for (const char* const text :
       {"", "float32", "float32[", "float32[2", "[2]", "float32[a]",
        "float32[-2]", "float32[2,,3]", "float32[1,1,1,1,1,1,1,1,1]"}) {
    EXPECT_THAT(ParseTensorType(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is no type such as")))
        << text;
  }
}

}  // namespace
}  // namespace muster
