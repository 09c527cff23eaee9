#include "common/compute/kernels/programs/program_kernel.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/programs/compiled/program_compiler.h"
#include "common/compute/programs/program.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x * x, and its gradient 2 x dy, for `rows` rows of 2.
std::string Square(int64_t rows, bool is_gradient) {
  const std::string type = absl::StrCat("tensor<", rows, "x2xf32>");
  if (!is_gradient) {
    return absl::StrCat("func.func public @main(%x: ", type, ") -> ", type,
                        " {\n  %0 = stablehlo.multiply %x, %x : ", type,
                        "\n  return %0 : ", type, "\n}");
  }
  return absl::StrCat("func.func public @main(%x: ", type, ", %dy: ", type,
                      ") -> ", type, " {\n  %0 = stablehlo.add %x, %x : ", type,
                      "\n  %1 = stablehlo.multiply %0, %dy : ", type,
                      "\n  return %1 : ", type, "\n}");
}

TensorType Rows(int64_t rows) { return {DType::kFloat32, {rows, 2}}; }

Program SquareProgram() {
  Program program;
  program.name = "square";
  program.types = {{Rows(Shape::kUnknown)}, {Rows(Shape::kUnknown)}};
  program.gradient = {.inputs = {0}, .output_count = 1};
  for (const int64_t rows : {1, 2}) {
    program.variants.push_back({{{Rows(rows)}, {Rows(rows)}},
                                Square(rows, false),
                                Square(rows, true)});
  }
  return program;
}

// These tests need a plugin: MUSTER_PJRT_PLUGIN is its path.
class ProgramKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const plugin = std::getenv(internal::kPluginVariable);
    if (plugin == nullptr || *plugin == '\0') {
      GTEST_SKIP() << "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for "
                      "CPUs: export $(tests/setup_tools.sh)";
    }
    internal::RegisterProgramKernels(&registry_);
  }

  absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const Program& program, bool is_gradient,
      const std::vector<TensorType>& inputs, const TensorType& output) {
    return registry_.Create({.op = "Program",
                             .attributes = {{"program", program.Encode()},
                                            {"is_gradient", is_gradient}},
                             .inputs = inputs,
                             .outputs = {output}},
                            1);
  }

  absl::StatusOr<Tensor> Run(const Program& program, bool is_gradient,
                             const std::vector<Tensor>& inputs) {
    std::vector<TensorType> types;
    std::vector<const Tensor*> pointers;
    for (const Tensor& input : inputs) {
      types.push_back(input.type());
      pointers.push_back(&input);
    }
    ASSIGN_OR_RETURN(const auto kernel,
                     Create(program, is_gradient, types, types[0]));
    Tensor output(types[0].dtype, types[0].shape);
    Tensor* const pointer = &output;
    // The second run must not depend on the first one.
    for (int i = 0; i < 2; ++i) {
      RETURN_IF_ERROR(
          kernel->Run({.inputs = pointers, .outputs = {&pointer, 1}}));
    }
    return output;
  }

  KernelRegistry registry_;
};

TEST_F(ProgramKernelTest, RunsTheVariantOfTheBatchSize) {
  const auto one = Tensor::FromValues<float>({1, 2}, {2, 3});
  const auto two = Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4});
  ASSERT_OK_AND_ASSIGN(const Tensor y1, Run(SquareProgram(), false, {one}));
  EXPECT_THAT(y1.flat<float>(), ElementsAre(4, 9));
  ASSERT_OK_AND_ASSIGN(const Tensor y2, Run(SquareProgram(), false, {two}));
  EXPECT_THAT(y2.flat<float>(), ElementsAre(1, 4, 9, 16));
  ASSERT_OK_AND_ASSIGN(const Tensor dx, Run(SquareProgram(), true, {two, y2}));
  EXPECT_THAT(dx.flat<float>(), ElementsAre(2, 16, 54, 128));
}

TEST_F(ProgramKernelTest, ReturnsZerosWithoutExamples) {
  // An output without rows, such as the gradient of a weight.
  const TensorType weight = {DType::kFloat32, {3}};
  Program program = SquareProgram();
  program.types.outputs = {weight};
  for (Program::Variant& variant : program.variants) {
    variant.types.outputs = {weight};
  }
  const auto kernel = Create(program, false, {Rows(0)}, weight);
  ASSERT_OK(kernel);
  const Tensor x(DType::kFloat32, {0, 2});
  const Tensor* const input = &x;
  Tensor y = Tensor::Full(DType::kFloat32, {3}, 7);
  Tensor* const output = &y;
  ASSERT_OK((*kernel)->Run({.inputs = {&input, 1}, .outputs = {&output, 1}}));
  EXPECT_THAT(y.flat<float>(), ElementsAre(0, 0, 0));
}

TEST_F(ProgramKernelTest, CompilesAModuleOnce) {
  const std::string module = Square(2, false);
  ASSERT_OK_AND_ASSIGN(const auto first,
                       internal::CompileProgram("a", module, 1));
  ASSERT_OK_AND_ASSIGN(const auto second,
                       internal::CompileProgram("b", module, 1));
  EXPECT_EQ(first, second);
}

TEST_F(ProgramKernelTest, NamesTheProgramThatDoesNotCompile) {
  Program program = SquareProgram();
  program.variants[0].stablehlo = "func.func public @main() { stablehlo.nop }";
  EXPECT_THAT(
      Create(program, false, {Rows(1)}, Rows(1)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("program square"), HasSubstr("stablehlo.nop"))));
}

TEST_F(ProgramKernelTest, RejectsAModuleWithOtherTypesThanItsVariant) {
  Program program = SquareProgram();
  program.variants[0].stablehlo = Square(2, false);
  const auto kernel = Create(program, false, {Rows(1)}, Rows(1));
  ASSERT_OK(kernel);
  const Tensor x = Tensor::Zeros(DType::kFloat32, {1, 2});
  const Tensor* const input = &x;
  Tensor y = Tensor::Zeros(DType::kFloat32, {1, 2});
  Tensor* const output = &y;
  EXPECT_THAT((*kernel)->Run({.inputs = {&input, 1}, .outputs = {&output, 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("program square")));
}

}  // namespace
}  // namespace muster
