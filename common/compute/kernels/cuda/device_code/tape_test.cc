#include "common/compute/kernels/cuda/device_code/tape.h"

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/device_code/tape_image.h"
#include "common/compute/kernels/cuda/tape_plan.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/driver/kernel_image.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/simulated/simulated_grid.h"
#include "common/core/tensor/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::internal {
namespace {

using testing::ElementsAre;

constexpr uint8_t kNone = Tape::kNone;

// Returns a layout that maps all positions to the same element, or to
// consecutive elements.
DeviceLayout Layout(int64_t stride, int64_t count) {
  DeviceLayout layout = {};
  layout.rank = 1;
  layout.extents[0] = count;
  layout.strides[0] = stride;
  return layout;
}

// Runs the kernel that computes in C.
template <typename C>
void RunTape(Tape tape) {
  constexpr ElementType kType = kIsInteger<C>    ? ElementType::kInt64
                                : sizeof(C) == 8 ? ElementType::kFloat64
                                                 : ElementType::kFloat32;
  const absl::string_view name = kIsInteger<C>    ? "tape_int64"
                                 : sizeof(C) == 8 ? "tape_double"
                                                  : "tape_float";
  for (const SimulatedKernel& kernel : tape_image().simulated) {
    if (kernel.name != name) continue;
    const LaunchShape shape = PlaceSlots(kType, &tape);
    void* arguments[] = {&tape};
    ASSERT_OK(RunSimulatedGrid(kernel, shape, arguments, /*seed=*/1));
    return;
  }
  FAIL() << "no kernel " << name;
}

void SetOperand(int i, void* data, ElementType type, const DeviceLayout& layout,
                Tape* tape) {
  tape->operands[i].elements = {data, type};
  tape->operands[i].layout = layout;
  tape->operand_count = i + 1;
}

TEST(TapeTest, InstructionsReadOperandsImmediatesAndEarlierResults) {
  std::vector<float> x = {1, 2, 3, 4};
  float scale = 10;
  std::vector<float> y(4);
  Tape tape = {};
  tape.count = 4;
  tape.output = {y.data(), ElementType::kFloat32};
  SetOperand(0, x.data(), ElementType::kFloat32, Layout(1, 4), &tape);
  SetOperand(1, &scale, ElementType::kFloat32, Layout(0, 4), &tape);
  // Keeps x * scale in a temporary, subtracts 25, and rectifies. Then
  // multiplies by the temporary.
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
  RunTape<float>(tape);
  EXPECT_THAT(y, ElementsAre(0, 0, 150, 600));
}

TEST(TapeTest, TypesOfOperandsAndResultsAreIndependent) {
  std::vector<uint8_t> x = {200, 100};
  std::vector<int64_t> z = {int64_t{1} << 40, -1};
  std::vector<int32_t> y(2);
  Tape tape = {};
  tape.count = 2;
  tape.output = {y.data(), ElementType::kInt32};
  SetOperand(0, x.data(), ElementType::kUint8, Layout(1, 2), &tape);
  SetOperand(1, z.data(), ElementType::kInt64, Layout(1, 2), &tape);
  tape.instruction_count = 1;
  tape.instructions[0] = {TapeFunction::kAdd, {0, 1, kNone}, -1, 0};
  RunTape<int64_t>(tape);
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
  SetOperand(0, x.data(), ElementType::kInt64, Layout(1, 4), &tape);
  SetOperand(1, z.data(), ElementType::kInt64, Layout(1, 4), &tape);
  tape.instruction_count = 1;
  tape.instructions[0] = {TapeFunction::kDiv, {0, 1, kNone}, -1, 0};
  RunTape<int64_t>(tape);
  EXPECT_THAT(y, ElementsAre(3, 0, 2, 0));
  EXPECT_EQ(fault.code, static_cast<int32_t>(FaultCode::kDivisionByZero));
  EXPECT_TRUE(fault.element == 1 || fault.element == 3);
}

// Returns the layout of a view [rows, columns]: element row * row_stride +
// column * column_stride.
DeviceLayout MatrixLayout(int64_t rows, int64_t columns, int64_t row_stride,
                          int64_t column_stride) {
  DeviceLayout layout = {};
  layout.rank = 2;
  layout.extents[0] = rows;
  layout.extents[1] = columns;
  layout.strides[0] = row_stride;
  layout.strides[1] = column_stride;
  return layout;
}

// Computes y = (x * row + scalar) - x * row / 2 on views [rows, columns] of
// memory that begins `shift` elements after an aligned address: x is dense, of
// type E; the row is repeated.
template <typename E>
void ExpectComputesViews(ElementType type, int64_t rows, int64_t columns,
                         int shift, int positions_per_thread) {
  SCOPED_TRACE(testing::Message()
               << "type " << static_cast<int>(type) << ", " << rows << " x "
               << columns << ", shift " << shift << ", " << positions_per_thread
               << " positions per thread");
  const int64_t count = rows * columns;
  std::vector<E> x(static_cast<size_t>(count + shift));
  std::vector<float> row(static_cast<size_t>(columns + shift));
  std::vector<float> y(static_cast<size_t>(count + shift + 1), -7.0f);
  double scalar = 3;
  for (int64_t i = 0; i < count; ++i) {
    x[i + shift] = static_cast<E>(static_cast<float>(i % 101));
  }
  for (int64_t i = 0; i < columns; ++i) row[i + shift] = 2.0f * (i % 11);
  Tape tape = {};
  tape.count = count;
  tape.positions_per_thread = positions_per_thread;
  tape.output = {y.data() + shift, ElementType::kFloat32};
  SetOperand(0, x.data() + shift, type, Layout(1, count), &tape);
  SetOperand(1, row.data() + shift, ElementType::kFloat32,
             MatrixLayout(rows, columns, 0, 1), &tape);
  SetOperand(2, &scalar, ElementType::kFloat64, {}, &tape);
  constexpr uint8_t kLast = Tape::kAccumulator;
  tape.instruction_count = 4;
  tape.instructions[0] = {TapeFunction::kMul, {0, 1, kNone}, 1, 0};
  tape.instructions[1] = {TapeFunction::kAdd, {kLast, 2, kNone}, 3, 0};
  tape.instructions[2] = {TapeFunction::kDiv,
                          {Tape::kTemporary + 1, Tape::kImmediate, kNone},
                          -1,
                          2};
  tape.instructions[3] = {
      TapeFunction::kSub, {Tape::kTemporary + 3, kLast, kNone}, -1, 0};
  RunTape<float>(tape);
  for (int64_t i = 0; i < count; ++i) {
    const float product =
        static_cast<float>(i % 101) * (2 * (i % columns % 11));
    ASSERT_EQ(y[i + shift], product / 2 + 3) << "element " << i;
  }
  // The elements before and after the output are unchanged.
  if (shift > 0) {
    EXPECT_EQ(y[shift - 1], -7);
  }
  EXPECT_EQ(y[count + shift], -7);
}

template <typename E>
void ExpectComputesAllViews(ElementType type) {
  for (const int positions_per_thread : {1, Tape::kGroup<float>}) {
    for (const int shift : {0, 1, 2}) {
      // Rows with and without whole groups, and a partial last group.
      for (const int64_t columns : {1, 3, 8, 12, 64}) {
        for (const int64_t rows : {1, 2, 7, 64, 103}) {
          ExpectComputesViews<E>(type, rows, columns, shift,
                                 positions_per_thread);
        }
      }
    }
  }
}

TEST(TapeTest, ThreadsComputeOneOrSeveralPositionsOfAnyView) {
  ExpectComputesAllViews<float>(ElementType::kFloat32);
  ExpectComputesAllViews<double>(ElementType::kFloat64);
  ExpectComputesAllViews<bfloat16>(ElementType::kBfloat16);
  ExpectComputesAllViews<float16>(ElementType::kFloat16);
  ExpectComputesAllViews<uint8_t>(ElementType::kUint8);
  ExpectComputesAllViews<int32_t>(ElementType::kInt32);
  ExpectComputesAllViews<int64_t>(ElementType::kInt64);
}

constexpr ElementType kTypes[] = {
    ElementType::kFloat32,  ElementType::kFloat64, ElementType::kInt32,
    ElementType::kUint8,    ElementType::kInt64,   ElementType::kBool,
    ElementType::kBfloat16, ElementType::kFloat16};

// Two blocks of threads with several positions each, and a partial third block.
constexpr int64_t kSeveralBlocks = 2 * 1024 + 64;

// Memory for elements of any type.
using Memory = std::vector<uint64_t>;

// Returns 1, 2, 3, 1, 2, 3, ... as elements of a type.
Memory Counting(ElementType type) {
  std::vector<float> numbers(kSeveralBlocks);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(i % 3 + 1);
  }
  Memory memory(kSeveralBlocks);
  Tape tape = {};
  tape.count = kSeveralBlocks;
  tape.output = {memory.data(), type};
  SetOperand(0, numbers.data(), ElementType::kFloat32,
             Layout(1, kSeveralBlocks), &tape);
  tape.instruction_count = 1;
  tape.instructions[0] = {TapeFunction::kCopy, {0, kNone, kNone}, -1, 0};
  RunTape<float>(tape);
  return memory;
}

// Computes function(dense, row, scalar) in the type, rounds it, keeps it in a
// temporary, and adds a matrix whose rows overlap.
template <typename C>
Memory Computed(TapeFunction function, ElementType type, ElementType output,
                int positions_per_thread) {
  constexpr int64_t kColumns = kSeveralBlocks / 4;
  Memory numbers = Counting(type);
  Memory memory(kSeveralBlocks, ~uint64_t{0});
  FaultRecord fault = {};
  Tape tape = {};
  tape.count = kSeveralBlocks;
  tape.positions_per_thread = positions_per_thread;
  tape.output = {memory.data(), output};
  tape.fault = &fault;
  SetOperand(0, numbers.data(), type, Layout(1, kSeveralBlocks), &tape);
  SetOperand(1, numbers.data(), type, MatrixLayout(4, kColumns, 0, 1), &tape);
  SetOperand(2, numbers.data(), type, {}, &tape);
  SetOperand(3, numbers.data(), type,
             MatrixLayout(4, kColumns, kColumns / 2, 1), &tape);
  tape.instruction_count = 2;
  tape.instructions[0] = {function, {0, 1, 2}, 1, 0.25, ElementType::kBfloat16};
  tape.instructions[1] = {
      TapeFunction::kAdd, {3, Tape::kTemporary + 1, kNone}, -1, 0};
  RunTape<C>(tape);
  EXPECT_EQ(fault.code, static_cast<int32_t>(FaultCode::kNone));
  return memory;
}

template <typename C>
void ExpectSameBitsOfSeveralPositions(TapeFunction function, ElementType type,
                                      ElementType output) {
  EXPECT_EQ(Computed<C>(function, type, output, 1),
            Computed<C>(function, type, output, Tape::kGroup<C>))
      << "function " << static_cast<int>(function) << " of type "
      << static_cast<int>(type) << " to " << static_cast<int>(output);
}

TEST(TapeTest, SeveralPositionsHaveTheBitsOfOne) {
  for (int i = 0; i <= static_cast<int>(TapeFunction::kSelect); ++i) {
    const auto function = static_cast<TapeFunction>(i);
    ExpectSameBitsOfSeveralPositions<float>(function, ElementType::kFloat16,
                                            ElementType::kFloat32);
    ExpectSameBitsOfSeveralPositions<double>(function, ElementType::kFloat64,
                                             ElementType::kFloat64);
    ExpectSameBitsOfSeveralPositions<int64_t>(function, ElementType::kUint8,
                                              ElementType::kInt64);
  }
  for (const ElementType type : kTypes) {
    for (const ElementType output : kTypes) {
      const TapeFunction function = TapeFunction::kMul;
      ExpectSameBitsOfSeveralPositions<float>(function, type, output);
      ExpectSameBitsOfSeveralPositions<double>(function, type, output);
      ExpectSameBitsOfSeveralPositions<int64_t>(function, type, output);
    }
  }
}

TEST(TapeTest, PositionsBeyondTheEndHaveNoFaults) {
  std::vector<int64_t> x = {6, 7, 8, 9, 10, 0, 0, 0};
  std::vector<int64_t> y(8, -1);
  FaultRecord fault = {};
  Tape tape = {};
  tape.count = 5;
  tape.positions_per_thread = Tape::kGroup<int64_t>;
  tape.output = {y.data(), ElementType::kInt64};
  tape.fault = &fault;
  SetOperand(0, x.data(), ElementType::kInt64, Layout(1, 5), &tape);
  tape.instruction_count = 1;
  tape.instructions[0] = {TapeFunction::kDiv, {0, 0, kNone}, -1, 0};
  RunTape<int64_t>(tape);
  EXPECT_THAT(y, ElementsAre(1, 1, 1, 1, 1, -1, -1, -1));
  EXPECT_EQ(fault.code, static_cast<int32_t>(FaultCode::kNone));
}

TEST(TapeTest, SelectsForSeveralPositions) {
  const bool condition[] = {true, false, false, true, true, false};
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> y(6);
  Tape tape = {};
  tape.count = 6;
  tape.positions_per_thread = Tape::kGroup<float>;
  tape.output = {y.data(), ElementType::kFloat32};
  SetOperand(0, const_cast<bool*>(condition), ElementType::kBool, Layout(1, 6),
             &tape);
  SetOperand(1, x.data(), ElementType::kFloat32, Layout(1, 6), &tape);
  SetOperand(2, x.data() + 5, ElementType::kFloat32, Layout(-1, 6), &tape);
  tape.instruction_count = 1;
  tape.instructions[0] = {TapeFunction::kSelect, {0, 1, 2}, -1, 0};
  RunTape<float>(tape);
  EXPECT_THAT(y, ElementsAre(1, 5, 4, 4, 5, 1));
}

}  // namespace
}  // namespace muster::internal
