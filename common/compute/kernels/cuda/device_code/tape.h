#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_TAPE_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_TAPE_H_

#include "common/compute/functions/activation_functions.h"
#include "common/compute/functions/binary.h"
#include "common/compute/functions/unary.h"
#include "common/compute/kernels/cuda/device_code/device_elements.h"

// A tape is a short program that computes one element of an elementwise op or
// of several consecutive ones. Three kernels, for float, double and int64,
// interpret tapes. They replace a kernel for each op and type.
namespace muster::internal {

// Functions by their number of operands. Each has the name of a struct in
// functions/.
#define MUSTER_TAPE_UNARY(F)       \
  MUSTER_UNARY_NUMBER_FUNCTIONS(F) \
  MUSTER_RECTIFIER_FUNCTIONS(F)    \
  F(LogicalNot)
#define MUSTER_TAPE_UNARY_FLOAT(F) \
  MUSTER_UNARY_FLOAT_FUNCTIONS(F)  \
  MUSTER_FLOAT_TEST_FUNCTIONS(F)   \
  MUSTER_SMOOTH_FUNCTIONS(F)       \
  MUSTER_GELU_FUNCTIONS(F)
#define MUSTER_TAPE_BINARY(F)  \
  MUSTER_BINARY_FUNCTIONS(F)   \
  MUSTER_EQUALITY_FUNCTIONS(F) \
  MUSTER_ORDER_FUNCTIONS(F)    \
  MUSTER_LOGIC_FUNCTIONS(F)    \
  MUSTER_RECTIFIER_GRADIENTS(F)
#define MUSTER_TAPE_BINARY_FLOAT(F) \
  MUSTER_SMOOTH_GRADIENTS(F)        \
  MUSTER_GELU_GRADIENTS(F)          \
  F(SigmoidCrossEntropy)

enum class TapeFunction : uint8_t {
#define MUSTER_ENUMERATOR(name) k##name,
  MUSTER_TAPE_UNARY(MUSTER_ENUMERATOR)
      MUSTER_TAPE_UNARY_FLOAT(MUSTER_ENUMERATOR)
          MUSTER_ALPHA_FUNCTIONS(MUSTER_ENUMERATOR)
              MUSTER_TAPE_BINARY(MUSTER_ENUMERATOR)
                  MUSTER_TAPE_BINARY_FLOAT(MUSTER_ENUMERATOR)
                      MUSTER_ALPHA_GRADIENTS(MUSTER_ENUMERATOR)
#undef MUSTER_ENUMERATOR
  // Returns its operand, for Cast and for filling.
  kCopy,
  // Sources: condition, value if true, value if false.
  kSelect,
};

struct Tape {
  static constexpr int kThreads = 64;
  // Number of positions of a thread if it computes several in C. They form runs
  // of kRun adjacent positions.
  template <typename C>
  static constexpr int kGroup = 64 / static_cast<int>(sizeof(C));
  static constexpr int kRun = 4;
  static constexpr int kOperandsMax = 6;
  static constexpr int kInstructionsMax = 16;
  static constexpr int kTemporariesMax = 4;

  // The source of an instruction: the index of an operand, or one of these.
  static constexpr uint8_t kTemporary = kOperandsMax;  // The first temporary.
  static constexpr uint8_t kImmediate = 64;    // The instruction's parameter.
  static constexpr uint8_t kAccumulator = 65;  // The last result.
  static constexpr uint8_t kNone = 66;  // The function has no such operand.

  // How a thread reads an operand for its positions.
  enum class Access : uint8_t {
    kEach,    // Each element separately.
    kScalar,  // The same element for all positions.
    // The elements of a run are adjacent, and aligned for accesses of 16 bytes
    // or of the whole run.
    kRuns,
    // As kRuns, and the operand is one row along the output's last axis.
    kRow,
    // As kRuns, and the elements are in the output's order.
    kDense,
  };

  struct Operand {
    DeviceElements elements;
    DeviceLayout layout;  // Layout over the output's positions.
    // PlaceSlots() sets these.
    Access access;
    uint8_t element_bytes;
    uint32_t row_step;  // For kRow: from a run to the thread's next run.
  };

  // The place of an operand or a temporary in shared memory, in units of 16
  // bytes for each thread of the block.
  static constexpr int kUnitBytes = 16;
  struct Slot {
    ElementType type;
    uint8_t first_unit;
  };

  // accumulator = function(sources), rounded to a type that is no wider than
  // the computation; sources that the function does not have are kNone.
  // Then temporaries[kept] = accumulator if `kept` is not negative.
  struct Instruction {
    TapeFunction function;
    uint8_t sources[3];
    int8_t kept;
    double parameter;  // alpha, or the value of kImmediate.
    // kBfloat16, kFloat16 or kBool in the kernel for float; other values have
    // no effect.
    ElementType rounded_to = ElementType::kFloat64;
  };

  int64_t count;  // Elements of the output.
  DeviceElements output;
  FaultRecord* fault;
  int32_t positions_per_thread = 1;  // Or kGroup.
  int32_t operand_count;
  int32_t instruction_count;
  // By source; PlaceSlots() sets them.
  Slot slots[kOperandsMax + kTemporariesMax];
  Operand operands[kOperandsMax];
  Instruction instructions[kInstructionsMax];
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_TAPE_H_
