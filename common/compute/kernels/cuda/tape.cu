// Interprets tapes: elementwise ops on elements of all types.

#include "common/compute/kernels/cuda/device_functions.h"
#include "common/compute/kernels/cuda/tape.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

template <typename C>
__device__ C LoadSource(const Tape& tape, const Tape::Instruction& instruction,
                        int which, int64_t position, C accumulator,
                        const C* temporaries) {
  const uint8_t source = instruction.sources[which];
  if (source == Tape::kAccumulator) return accumulator;
  if (source == Tape::kImmediate) {
    return static_cast<C>(instruction.parameter);
  }
  if (source >= Tape::kTemporary) {
    return temporaries[(source - Tape::kTemporary) * Tape::kThreads];
  }
  const Tape::Operand& operand = tape.operands[source];
  return LoadElement<C>(operand.elements, operand.layout(position));
}

template <typename Function, typename C>
__device__ C ApplyBinary(const Tape& tape, int64_t position, Function function,
                         C a, C b) {
  if (!functions::IsDefined(function, b)) {
    ReportFault(tape.fault,
                kIsSame<Function, functions::Pow> ? FaultCode::kNegativeExponent
                                                  : FaultCode::kDivisionByZero,
                position, 0, 0);
    return C(0);
  }
  return static_cast<C>(function(a, b));
}

template <typename C>
__device__ C Compute(const Tape& tape, const Tape::Instruction& instruction,
                     int64_t position, C accumulator, const C* temporaries) {
  const auto source = [&](int which) {
    return LoadSource(tape, instruction, which, position, accumulator,
                      temporaries);
  };
  const TapeFunction function = instruction.function;
  // Loaded before the switch, which would otherwise hold the code that loads
  // elements of all types once for each function.
  const C a = source(0);
  const C b = source(1);
  // Without default, so that the compiler names functions that are missing.
  switch (function) {
#define MUSTER_CASE(name)     \
  case TapeFunction::k##name: \
    return static_cast<C>(functions::name()(a));
    MUSTER_TAPE_UNARY(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)                          \
  case TapeFunction::k##name:                      \
    if constexpr (!kIsInteger<C>) {                \
      return static_cast<C>(functions::name()(a)); \
    }                                              \
    return a;
    MUSTER_TAPE_UNARY_FLOAT(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)                               \
  case TapeFunction::k##name:                           \
    if constexpr (!kIsInteger<C>) {                     \
      return functions::name{instruction.parameter}(a); \
    }                                                   \
    return a;
    MUSTER_ALPHA_FUNCTIONS(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)     \
  case TapeFunction::k##name: \
    return ApplyBinary(tape, position, functions::name(), a, b);
    MUSTER_TAPE_BINARY(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)             \
  case TapeFunction::k##name:         \
    if constexpr (!kIsInteger<C>) {   \
      return functions::name()(a, b); \
    }                                 \
    return a;
    MUSTER_TAPE_BINARY_FLOAT(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)                                  \
  case TapeFunction::k##name:                              \
    if constexpr (!kIsInteger<C>) {                        \
      return functions::name{instruction.parameter}(a, b); \
    }                                                      \
    return a;
    MUSTER_ALPHA_GRADIENTS(MUSTER_CASE)
#undef MUSTER_CASE
    case TapeFunction::kCopy:
      return a;
    case TapeFunction::kSelect:
      return a != C(0) ? b : source(2);
  }
  return a;
}

template <typename C>
__device__ void RunTape(const Tape& tape) {
  // A thread uses only its own column.
  __shared__ C temporaries[Tape::kTemporariesMax * Tape::kThreads];
  C* const own = temporaries + threadIdx.x;
  const int64_t position = GlobalThread();
  if (position >= tape.count) return;
  C accumulator = C(0);
  for (int i = 0; i < tape.instruction_count; ++i) {
    const Tape::Instruction& instruction = tape.instructions[i];
    accumulator = Compute(tape, instruction, position, accumulator, own);
    if (instruction.kept >= 0) {
      own[instruction.kept * Tape::kThreads] = accumulator;
    }
  }
  StoreElement(tape.output, position, accumulator);
}

}  // namespace
}  // namespace muster::internal

using muster::internal::RunTape;
using muster::internal::Tape;

extern "C" __global__ void tape_float(const __grid_constant__ Tape tape) {
  RunTape<float>(tape);
}
extern "C" __global__ void tape_double(const __grid_constant__ Tape tape) {
  RunTape<double>(tape);
}
extern "C" __global__ void tape_int64(const __grid_constant__ Tape tape) {
  RunTape<int64_t>(tape);
}

MUSTER_SIMULATED_KERNELS(tape, MUSTER_PLAIN_KERNEL(tape_float),
                         MUSTER_PLAIN_KERNEL(tape_double),
                         MUSTER_PLAIN_KERNEL(tape_int64))
