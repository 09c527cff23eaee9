// Interprets tapes: elementwise ops on elements of all types.

#include "common/compute/kernels/cuda/device_functions.h"
#include "common/compute/kernels/cuda/element_group.h"
#include "common/compute/kernels/cuda/tape.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

// The elements of an operand at all positions of a thread, as the memory holds
// them. Their conversion waits for the memory.
struct PackedElements {
  bool is_loaded;
  uint32_t words[4];
};

template <int kWords>
__device__ __forceinline__ void LoadWords(const DeviceElements& elements,
                                          int64_t first,
                                          PackedElements* packed) {
  using Group = ElementGroup<uint32_t, kWords>;
  constexpr int kElementBytes = kWords * 4 / Tape::kGroup;
  const void* const address =
      static_cast<const uint8_t*>(elements.data) + first * kElementBytes;
  if (!IsAlignedFor<Group>(address)) return;
  const Group group = *static_cast<const Group*>(address);
  MUSTER_UNROLL
  for (int i = 0; i < kWords; ++i) packed->words[i] = group.values[i];
  packed->is_loaded = true;
}

// Loads the elements at kGroup positions if one access can.
__device__ __forceinline__ void LoadPacked(const Tape::Operand& operand,
                                           int64_t first,
                                           PackedElements* packed) {
  const DeviceLayout& layout = operand.layout;
  if (!HasDenseGroups<Tape::kGroup>(layout)) return;
  const int64_t offset = OffsetOf(layout, first);
  switch (operand.elements.type) {
    case ElementType::kFloat32:
    case ElementType::kInt32:
      LoadWords<4>(operand.elements, offset, packed);
      return;
    case ElementType::kBfloat16:
    case ElementType::kFloat16:
      LoadWords<2>(operand.elements, offset, packed);
      return;
    case ElementType::kUint8:
    case ElementType::kBool:
      LoadWords<1>(operand.elements, offset, packed);
      return;
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return;
  }
}

template <typename C, typename E>
__device__ C Widen(E element) {
  if constexpr (kIsSame<E, bfloat16> || kIsSame<E, float16>) {
    return static_cast<C>(static_cast<float>(element));
  } else {
    return static_cast<C>(element);
  }
}

template <typename E>
__device__ E Unpack(const PackedElements& packed, int k) {
  constexpr int kBits = 8 * sizeof(E);
  constexpr int kPerWord = 32 / kBits;
  const uint32_t word = packed.words[k / kPerWord];
  return BitCast<E>(static_cast<UnsignedOf<E>>(word >> (k % kPerWord * kBits)));
}

// The positions of a thread, and what it has computed for them.
template <typename C, int kCount>
struct Positions {
  int64_t first;
  int32_t count;  // Others are beyond the end of the output.
  C accumulator[kCount];
  C* temporaries;  // Of the thread.

  __device__ C& Temporary(int number, int k) const {
    return temporaries[(number * kCount + k) * Tape::kThreads];
  }
};

template <typename E, typename C, int kCount>
__device__ __forceinline__ void LoadElements(const DeviceElements& elements,
                                             const PackedElements& packed,
                                             const int64_t (&offsets)[kCount],
                                             int32_t count, C (&to)[kCount]) {
  if constexpr (kCount == Tape::kGroup && sizeof(E) <= sizeof(uint32_t)) {
    if (packed.is_loaded) {
      MUSTER_UNROLL
      for (int k = 0; k < kCount; ++k) to[k] = Widen<C>(Unpack<E>(packed, k));
      return;
    }
  }
  const E* const from = static_cast<const E*>(elements.data);
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    to[k] = k < count ? Widen<C>(from[offsets[k]]) : C(0);
  }
}

template <typename C, int kCount>
__device__ __forceinline__ void LoadOperand(const Tape::Operand& operand,
                                            const PackedElements& packed,
                                            const Positions<C, kCount>& at,
                                            C (&to)[kCount]) {
  int64_t offsets[kCount];
  if (!packed.is_loaded) OffsetsOf(operand.layout, at.first, offsets);
  const DeviceElements& from = operand.elements;
  switch (from.type) {
    case ElementType::kFloat32:
      return LoadElements<float>(from, packed, offsets, at.count, to);
    case ElementType::kFloat64:
      return LoadElements<double>(from, packed, offsets, at.count, to);
    case ElementType::kInt32:
      return LoadElements<int32_t>(from, packed, offsets, at.count, to);
    case ElementType::kUint8:
      return LoadElements<uint8_t>(from, packed, offsets, at.count, to);
    case ElementType::kInt64:
      return LoadElements<int64_t>(from, packed, offsets, at.count, to);
    case ElementType::kBool:
      return LoadElements<bool>(from, packed, offsets, at.count, to);
    case ElementType::kBfloat16:
      return LoadElements<bfloat16>(from, packed, offsets, at.count, to);
    case ElementType::kFloat16:
      return LoadElements<float16>(from, packed, offsets, at.count, to);
  }
}

template <typename C, int kCount>
__device__ __forceinline__ void LoadSource(const Tape& tape,
                                           const Tape::Instruction& instruction,
                                           int which,
                                           const PackedElements& packed,
                                           const Positions<C, kCount>& at,
                                           C (&to)[kCount]) {
  const uint8_t source = instruction.sources[which];
  if (source < Tape::kOperandsMax) {
    return LoadOperand(tape.operands[source], packed, at, to);
  }
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (source == Tape::kAccumulator) {
      to[k] = at.accumulator[k];
    } else if (source == Tape::kImmediate) {
      to[k] = static_cast<C>(instruction.parameter);
    } else {
      to[k] = at.Temporary(source - Tape::kTemporary, k);
    }
  }
}

template <typename Function, typename C>
__device__ C ApplyBinary(const Tape& tape, int64_t position, Function function,
                         C a, C b) {
  if (!functions::IsDefined(function, b)) {
    if (position >= tape.count) return C(0);
    ReportFault(tape.fault,
                kIsSame<Function, functions::Pow> ? FaultCode::kNegativeExponent
                                                  : FaultCode::kDivisionByZero,
                position, 0, 0);
    return C(0);
  }
  return static_cast<C>(function(a, b));
}

// Computes a function for all positions of a thread: what depends on the
// instruction alone is done once for them.
template <typename C, int kCount>
__device__ __forceinline__ void Compute(const Tape& tape,
                                        const Tape::Instruction& instruction,
                                        const C (&a)[kCount],
                                        const C (&b)[kCount],
                                        const C (&c)[kCount],
                                        Positions<C, kCount>* at) {
  const auto for_each = [&](auto function) {
    MUSTER_UNROLL
    for (int k = 0; k < kCount; ++k) at->accumulator[k] = function(k);
  };
  [[maybe_unused]] const double alpha = instruction.parameter;
  for_each([&](int k) { return a[k]; });
  // Without default, so that the compiler names functions that are missing.
  switch (instruction.function) {
#define MUSTER_CASE(name)                                                     \
  case TapeFunction::k##name:                                                 \
    for_each([&](int k) { return static_cast<C>(functions::name()(a[k])); }); \
    return;
    MUSTER_TAPE_UNARY(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)                                                  \
  case TapeFunction::k##name:                                              \
    if constexpr (!kIsInteger<C>) {                                        \
      for_each(                                                            \
          [&](int k) { return static_cast<C>(functions::name()(a[k])); }); \
    }                                                                      \
    return;
    MUSTER_TAPE_UNARY_FLOAT(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)                                            \
  case TapeFunction::k##name:                                        \
    if constexpr (!kIsInteger<C>) {                                  \
      for_each([&](int k) { return functions::name{alpha}(a[k]); }); \
    }                                                                \
    return;
    MUSTER_ALPHA_FUNCTIONS(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)                                                     \
  case TapeFunction::k##name:                                                 \
    for_each([&](int k) {                                                     \
      return ApplyBinary(tape, at->first + k, functions::name(), a[k], b[k]); \
    });                                                                       \
    return;
    MUSTER_TAPE_BINARY(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)                                             \
  case TapeFunction::k##name:                                         \
    if constexpr (!kIsInteger<C>) {                                   \
      for_each([&](int k) { return functions::name()(a[k], b[k]); }); \
    }                                                                 \
    return;
    MUSTER_TAPE_BINARY_FLOAT(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)                                                  \
  case TapeFunction::k##name:                                              \
    if constexpr (!kIsInteger<C>) {                                        \
      for_each([&](int k) { return functions::name{alpha}(a[k], b[k]); }); \
    }                                                                      \
    return;
    MUSTER_ALPHA_GRADIENTS(MUSTER_CASE)
#undef MUSTER_CASE
    case TapeFunction::kCopy:
      return;
    case TapeFunction::kSelect:
      for_each([&](int k) { return a[k] != C(0) ? b[k] : c[k]; });
      return;
  }
}

template <typename E, typename C, int kCount>
__device__ __forceinline__ void RoundTo(Positions<C, kCount>* at) {
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    at->accumulator[k] = Widen<C>(ConvertNumber<E>(at->accumulator[k]));
  }
}

template <int kCount>
__device__ __forceinline__ void Round(ElementType type,
                                      Positions<float, kCount>* at) {
  if (type == ElementType::kBfloat16) RoundTo<bfloat16>(at);
  if (type == ElementType::kFloat16) RoundTo<float16>(at);
  if (type == ElementType::kBool) RoundTo<bool>(at);
}

template <typename C, int kCount>
__device__ __forceinline__ void RunInstruction(
    const Tape& tape, const Tape::Instruction& instruction,
    Positions<C, kCount>* at) {
  PackedElements packed[3];
  MUSTER_UNROLL
  for (int which = 0; which < 3; ++which) {
    packed[which].is_loaded = false;
    const uint8_t source = instruction.sources[which];
    if (kCount == Tape::kGroup && at->count == kCount &&
        source < Tape::kOperandsMax) {
      LoadPacked(tape.operands[source], at->first, &packed[which]);
    }
  }
  // Before the switch of functions, which would otherwise hold the code that
  // loads elements of all types once for each function. In a loop that passes
  // the sources on, so that there is one copy of this code.
  C a[kCount] = {};
  C b[kCount] = {};
  C c[kCount];
  MUSTER_KEEP_LOOP
  for (int which = 2; which >= 0; --which) {
    C loaded[kCount];
    LoadSource(tape, instruction, which, packed[2], *at, loaded);
    packed[2] = packed[1];
    packed[1] = packed[0];
    MUSTER_UNROLL
    for (int k = 0; k < kCount; ++k) {
      c[k] = b[k];
      b[k] = a[k];
      a[k] = loaded[k];
    }
  }
  Compute(tape, instruction, a, b, c, at);
  if constexpr (kIsSame<C, float>) Round(instruction.rounded_to, at);
  if (instruction.kept < 0) return;
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    at->Temporary(instruction.kept, k) = at->accumulator[k];
  }
}

template <typename E, typename C, int kCount>
__device__ __forceinline__ void StoreElements(const Positions<C, kCount>& at,
                                              void* data) {
  using Group = ElementGroup<E, kCount>;
  E* const to = static_cast<E*>(data) + at.first;
  Group group;
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    group.values[k] = ConvertNumber<E>(at.accumulator[k]);
  }
  if (at.count == kCount && IsAlignedFor<Group>(to)) {
    *reinterpret_cast<Group*>(to) = group;
    return;
  }
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (k < at.count) to[k] = group.values[k];
  }
}

template <typename C, int kCount>
__device__ __forceinline__ void StoreOutput(const Positions<C, kCount>& at,
                                            const DeviceElements& output) {
  switch (output.type) {
    case ElementType::kFloat32:
      return StoreElements<float>(at, output.data);
    case ElementType::kFloat64:
      return StoreElements<double>(at, output.data);
    case ElementType::kInt32:
      return StoreElements<int32_t>(at, output.data);
    case ElementType::kUint8:
      return StoreElements<uint8_t>(at, output.data);
    case ElementType::kInt64:
      return StoreElements<int64_t>(at, output.data);
    case ElementType::kBool:
      return StoreElements<bool>(at, output.data);
    case ElementType::kBfloat16:
      return StoreElements<bfloat16>(at, output.data);
    case ElementType::kFloat16:
      return StoreElements<float16>(at, output.data);
  }
}

template <typename C, int kCount>
__device__ __forceinline__ void RunPositions(const Tape& tape, C* temporaries) {
  Positions<C, kCount> at;
  at.first = GlobalThread() * kCount;
  if (at.first >= tape.count) return;
  const int64_t count = tape.count - at.first;
  at.count = count < kCount ? static_cast<int32_t>(count) : kCount;
  at.temporaries = temporaries;
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) at.accumulator[k] = C(0);
  for (int i = 0; i < tape.instruction_count; ++i) {
    RunInstruction(tape, tape.instructions[i], &at);
  }
  StoreOutput(at, tape.output);
}

template <typename C>
__device__ void RunTape(const Tape& tape) {
  // A thread uses only its own column.
  __shared__ C
      temporaries[Tape::kTemporariesMax * Tape::kGroup * Tape::kThreads];
  if (tape.positions_per_thread == Tape::kGroup) {
    RunPositions<C, Tape::kGroup>(tape, temporaries + threadIdx.x);
  } else {
    RunPositions<C, 1>(tape, temporaries + threadIdx.x);
  }
}

}  // namespace
}  // namespace muster::internal

using muster::internal::RunTape;
using muster::internal::Tape;

// Seven blocks on a multiprocessor have enough loads on their way.
extern "C" __global__ void __launch_bounds__(Tape::kThreads, 7)
    tape_float(const __grid_constant__ Tape tape) {
  RunTape<float>(tape);
}
extern "C" __global__ void __launch_bounds__(Tape::kThreads)
    tape_double(const __grid_constant__ Tape tape) {
  RunTape<double>(tape);
}
extern "C" __global__ void __launch_bounds__(Tape::kThreads)
    tape_int64(const __grid_constant__ Tape tape) {
  RunTape<int64_t>(tape);
}

MUSTER_SIMULATED_KERNELS(tape, MUSTER_PLAIN_KERNEL(tape_float),
                         MUSTER_PLAIN_KERNEL(tape_double),
                         MUSTER_PLAIN_KERNEL(tape_int64))
