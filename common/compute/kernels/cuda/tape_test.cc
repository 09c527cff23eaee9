#include "common/compute/kernels/cuda/tape.h"

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/tape_image.h"
#include "common/core/base/status_matchers.h"
#include "common/core/device/kernel_image.h"
#include "common/core/device/launch_shape.h"
#include "common/core/device/simulated/simulated_grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::internal {
namespace {

using testing::ElementsAre;

constexpr uint8_t kNone = Tape::kImmediate;

// A layout of the same element for each position, or of all in order.
DeviceLayout Layout(int64_t stride, int64_t count) {
  DeviceLayout layout = {};
  layout.rank = 1;
  layout.extents[0] = count;
  layout.strides[0] = stride;
  return layout;
}

void RunTape(absl::string_view name, Tape tape) {
  for (const SimulatedKernel& kernel : tape_image().simulated) {
    if (kernel.name != name) continue;
    void* arguments[] = {&tape};
    LaunchShape shape;
    shape.block[0] = Tape::kThreads;
    ASSERT_OK(RunSimulatedGrid(kernel, shape, arguments, /*seed=*/1));
    return;
  }
  FAIL() << "no kernel " << name;
}

TEST(TapeTest, InstructionsReadOperandsImmediatesAndEarlierResults) {
  std::vector<float> x = {1, 2, 3, 4};
  float scale = 10;
  std::vector<float> y(4);
  Tape tape = {};
  tape.count = 4;
  tape.output = {y.data(), ElementType::kFloat32};
  tape.operands[0] = {{x.data(), ElementType::kFloat32}, Layout(1, 4)};
  tape.operands[1] = {{&scale, ElementType::kFloat32}, Layout(0, 4)};
  // Keeps x * scale, subtracts 25 from it, and rectifies; then multiplies with
  // what was kept.
  tape.instruction_count = 4;
  tape.instructions[0] = {TapeFunction::kMul, {0, 1, kNone}, 2, 0};
  tape.instructions[1] = {TapeFunction::kSub,
                          {Tape::kAccumulator, Tape::kImmediate, kNone},
                          -1,
                          25};
  tape.instructions[2] = {
      TapeFunction::kRelu, {Tape::kAccumulator, kNone, kNone}, -1, 0};
  tape.instructions[3] = {TapeFunction::kMul,
                          {Tape::kAccumulator, Tape::kTemporary + 2, kNone},
                          -1,
                          0};
  RunTape("tape_float", tape);
  EXPECT_THAT(y, ElementsAre(0, 0, 150, 600));
}

TEST(TapeTest, TypesOfOperandsAndResultsAreIndependent) {
  std::vector<uint8_t> x = {200, 100};
  std::vector<int64_t> z = {int64_t{1} << 40, -1};
  std::vector<int32_t> y(2);
  Tape tape = {};
  tape.count = 2;
  tape.output = {y.data(), ElementType::kInt32};
  tape.operands[0] = {{x.data(), ElementType::kUint8}, Layout(1, 2)};
  tape.operands[1] = {{z.data(), ElementType::kInt64}, Layout(1, 2)};
  tape.instruction_count = 1;
  tape.instructions[0] = {TapeFunction::kAdd, {0, 1, kNone}, -1, 0};
  RunTape("tape_int64", tape);
  // Wraps to the lower 32 bits.
  EXPECT_THAT(y, ElementsAre(200, 99));
}

TEST(TapeTest, FirstFaultIsRecordedAndTheKernelGoesOn) {
  std::vector<int64_t> x = {6, 7, 8, 9};
  std::vector<int64_t> z = {2, 0, 4, 0};
  std::vector<int64_t> y(4, -1);
  FaultRecord fault = {};
  Tape tape = {};
  tape.count = 4;
  tape.output = {y.data(), ElementType::kInt64};
  tape.fault = &fault;
  tape.operands[0] = {{x.data(), ElementType::kInt64}, Layout(1, 4)};
  tape.operands[1] = {{z.data(), ElementType::kInt64}, Layout(1, 4)};
  tape.instruction_count = 1;
  tape.instructions[0] = {TapeFunction::kDiv, {0, 1, kNone}, -1, 0};
  RunTape("tape_int64", tape);
  EXPECT_THAT(y, ElementsAre(3, 0, 2, 0));
  EXPECT_EQ(fault.code, static_cast<int32_t>(FaultCode::kDivisionByZero));
  EXPECT_TRUE(fault.element == 1 || fault.element == 3);
}

}  // namespace
}  // namespace muster::internal
