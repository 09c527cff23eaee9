// Interprets tapes: elementwise ops on elements of all types.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/element_group.h"
#include "common/compute/kernels/cuda/device_code/tape.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

// A unit of a thread's shared memory, for elements of any type.
struct [[gnu::may_alias]] alignas(Tape::kUnitBytes) Unit {
  uint32_t words[Tape::kUnitBytes / 4];
};

template <typename T>
struct WithoutConst;
template <typename T>
struct WithoutConst<const T&> {
  using type = T;
};
template <typename T>
using RemoveConst = typename WithoutConst<T>::type;

template <typename E>
inline constexpr int kPerUnit = Tape::kUnitBytes / sizeof(E);
template <typename E, int kCount>
inline constexpr int kUnits = (kCount + kPerUnit<E> - 1) / kPerUnit<E>;

template <typename C, typename E>
__device__ C Widen(E element) {
  if constexpr (kIsSame<E, bfloat16> || kIsSame<E, float16>) {
    return static_cast<C>(Widened(element));
  } else {
    return static_cast<C>(element);
  }
}

template <typename E>
__device__ E Unpack(const Unit& unit, int k) {
  if constexpr (sizeof(E) == 8) {
    return BitCast<E>(uint64_t{unit.words[2 * k + 1]} << 32 |
                      unit.words[2 * k]);
  } else {
    constexpr int kBits = 8 * sizeof(E);
    constexpr int kPerWord = 32 / kBits;
    const uint32_t word = unit.words[k / kPerWord];
    return BitCast<E>(
        static_cast<UnsignedOf<E>>(word >> (k % kPerWord * kBits)));
  }
}

// The positions of a thread: runs of adjacent positions. The runs of a block's
// threads are adjacent, too, so that an access of a warp has no gaps.
template <int kCount>
struct Positions {
  static constexpr int kRun = kCount < Tape::kRun ? kCount : Tape::kRun;
  static constexpr int kRunStride = kRun * Tape::kThreads;

  __device__ int64_t operator[](int k) const {
    return first + k / kRun * kRunStride + k % kRun;
  }
  __device__ Unit* UnitsOf(const Tape::Slot& slot) const {
    return units + slot.first_unit * Tape::kThreads;
  }

  int64_t first;
  int64_t end;
  bool is_whole;  // True if no position of the block exceeds `end`.
  Unit* units;    // The thread's units: every kThreads-th.
};

// Returns the address of element i of a slot.
template <typename Word>
__device__ Word* WordAt(Unit* units, int i) {
  return reinterpret_cast<Word*>(units + i / kPerUnit<Word> * Tape::kThreads) +
         i % kPerUnit<Word>;
}

// Copies an element to all positions.
template <typename Word, int kCount>
__device__ __forceinline__ void FetchScalar(const Word* from, Unit* to) {
  ElementGroup<Word, kPerUnit<Word>> same;
  same.values[0] = *from;
  MUSTER_UNROLL
  for (int k = 1; k < kPerUnit<Word>; ++k) same.values[k] = same.values[0];
  MUSTER_UNROLL
  for (int u = 0; u < kUnits<Word, kCount>; ++u) {
    to[u * Tape::kThreads] = BitCast<Unit>(same);
  }
}

// Starts a copy of a run of adjacent elements.
template <typename Word, int kRun>
__device__ __forceinline__ void FetchRun(const Word* from, int run, Unit* to) {
  constexpr int kBytesMax = kAccessBytesMax;
  constexpr int kBytes =
      kRun * sizeof(Word) < kBytesMax ? kRun * sizeof(Word) : kBytesMax;
  constexpr int kPerAccess = kBytes / sizeof(Word);
  MUSTER_UNROLL
  for (int k = 0; k < kRun; k += kPerAccess) {
    CopyToShared<kBytes>(WordAt<Word>(to, run * kRun + k), from + k);
  }
}

// Calls visit(from) for the operand's elements as words of their size.
template <typename Visit>
__device__ __forceinline__ void VisitWords(const Tape::Operand& operand,
                                           const Visit& visit) {
  const void* const from = operand.elements.data;
  switch (operand.element_bytes) {
    case 1:
      return visit(static_cast<const uint8_t*>(from));
    case 2:
      return visit(static_cast<const uint16_t*>(from));
    case 4:
      return visit(static_cast<const uint32_t*>(from));
    default:
      return visit(static_cast<const uint64_t*>(from));
  }
}

// Starts a copy of the operand's elements for a run.
template <int kCount>
__device__ __forceinline__ void FetchAnyRun(const Tape::Operand& operand,
                                            const Positions<kCount>& at,
                                            int run, Unit* to) {
  constexpr int kRun = Positions<kCount>::kRun;
  const int64_t first = at[run * kRun];
  if constexpr (kRun > 1) {
    if (operand.access == Tape::Access::kRuns && at.is_whole) {
      const int64_t offset = OffsetOf(operand.layout, first);
      return VisitWords(operand, [&](const auto* from) {
        FetchRun<RemoveConst<decltype(*from)>, kRun>(from + offset, run, to);
      });
    }
  }
  int64_t offsets[kRun];
  OffsetsOf(operand.layout, first, offsets);
  VisitWords(operand, [&](const auto* from) {
    MUSTER_UNROLL
    for (int k = 0; k < kRun; ++k) {
      auto* const place =
          WordAt<RemoveConst<decltype(*from)>>(to, run * kRun + k);
      *place = first + k < at.end ? from[offsets[k]] : 0;
    }
  });
}

// Starts a copy of a row that is repeated. Computes the place in the row with
// one division.
template <int kCount>
__device__ __forceinline__ void FetchRow(const Tape::Operand& operand,
                                         const Positions<kCount>& at,
                                         Unit* to) {
  constexpr int kRun = Positions<kCount>::kRun;
  const uint32_t row = static_cast<uint32_t>(operand.layout.extents[1]);
  const uint32_t first = static_cast<uint32_t>(at.first) % row;
  VisitWords(operand, [&](const auto* from) {
    uint32_t place = first;
    MUSTER_UNROLL
    for (int run = 0; run < kCount / kRun; ++run) {
      FetchRun<RemoveConst<decltype(*from)>, kRun>(
          from + operand.layout.offset + place, run, to);
      place += operand.row_step;
      if (place >= row) place -= row;
    }
  });
}

// Starts a copy of an operand to its slot.
template <int kCount>
__device__ __forceinline__ void FetchOperand(const Tape::Operand& operand,
                                             const Positions<kCount>& at,
                                             Unit* to) {
  constexpr int kRun = Positions<kCount>::kRun;
  if constexpr (kCount > 1) {
    const int64_t offset = operand.layout.offset;
    if (operand.access == Tape::Access::kDense && at.is_whole) {
      return VisitWords(operand, [&](const auto* from) {
        MUSTER_UNROLL
        for (int run = 0; run < kCount / kRun; ++run) {
          FetchRun<RemoveConst<decltype(*from)>, kRun>(
              from + offset + at[run * kRun], run, to);
        }
      });
    }
    if (operand.access == Tape::Access::kRow && at.is_whole) {
      return FetchRow(operand, at, to);
    }
    if (operand.access == Tape::Access::kScalar) {
      return VisitWords(operand, [&](const auto* from) {
        FetchScalar<RemoveConst<decltype(*from)>, kCount>(from + offset, to);
      });
    }
  }
  MUSTER_KEEP_LOOP
  for (int run = 0; run < kCount / kRun; ++run) {
    FetchAnyRun(operand, at, run, to);
  }
}

template <typename E, typename C, int kCount>
__device__ __forceinline__ void ReadElements(const Unit* from,
                                             C (&to)[kCount]) {
  MUSTER_UNROLL
  for (int u = 0; u < kUnits<E, kCount>; ++u) {
    const Unit unit = from[u * Tape::kThreads];
    MUSTER_UNROLL
    for (int k = 0; k < kPerUnit<E>; ++k) {
      const int i = u * kPerUnit<E> + k;
      if (i < kCount) to[i] = Widen<C>(Unpack<E>(unit, k));
    }
  }
}

template <typename C, int kCount>
__device__ __forceinline__ void ReadSlot(const Tape::Slot& slot,
                                         const Unit* from, C (&to)[kCount]) {
  switch (slot.type) {
    case ElementType::kFloat32:
      return ReadElements<float>(from, to);
    case ElementType::kFloat64:
      return ReadElements<double>(from, to);
    case ElementType::kInt32:
      return ReadElements<int32_t>(from, to);
    case ElementType::kUint8:
      return ReadElements<uint8_t>(from, to);
    case ElementType::kInt64:
      return ReadElements<int64_t>(from, to);
    case ElementType::kBool:
      return ReadElements<bool>(from, to);
    case ElementType::kBfloat16:
      return ReadElements<bfloat16>(from, to);
    case ElementType::kFloat16:
      return ReadElements<float16>(from, to);
  }
}

// Leaves `to` unchanged if the source is kNone.
template <typename C, int kCount>
__device__ __forceinline__ void ReadSource(const Tape& tape,
                                           const Tape::Instruction& instruction,
                                           int which,
                                           const Positions<kCount>& at,
                                           const C (&accumulator)[kCount],
                                           C (&to)[kCount]) {
  const uint8_t source = instruction.sources[which];
  if (source == Tape::kNone) return;
  if (source < Tape::kImmediate) {
    const Tape::Slot slot = tape.slots[source];
    return ReadSlot(slot, at.UnitsOf(slot), to);
  }
  const bool is_immediate = source == Tape::kImmediate;
  const C value = is_immediate ? static_cast<C>(instruction.parameter) : C(0);
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    to[k] = is_immediate ? value : accumulator[k];
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

template <typename Function, typename... Others>
inline constexpr bool kIsOneOf = (kIsSame<Function, Others> || ...);

// The number of positions for which the code of a function is unrolled. More
// positions run in a loop: unrolling long code would exceed caches and
// registers. In double, all functions that exist for floating-point numbers
// only are long.
template <typename Function, typename C, bool kIsForFloats>
inline constexpr int kPositionsAtOnce =
    (sizeof(C) == 8 && (kIsForFloats || kIsSame<Function, functions::Div>)) ||
            kIsOneOf<Function, functions::Pow, functions::Mod,
                     functions::FloorDiv, functions::Expm1, functions::Log,
                     functions::Log1p, functions::Sin, functions::Cos,
                     functions::Softplus, functions::SigmoidCrossEntropy,
                     functions::Elu, functions::EluGrad>
        ? 1
    : kIsOneOf<Function, functions::Div, functions::Rsqrt,
               functions::Reciprocal, functions::Erf, functions::Sigmoid,
               functions::Tanh, functions::Softsign, functions::GeluTanh,
               functions::GeluTanhGrad>
        ? 4
        : 64;

// Moves the last values to the front, and the first kBy ones to the end.
template <int kBy, typename C, int kCount>
__device__ __forceinline__ void Rotate(C (&values)[kCount]) {
  C first[kBy];
  MUSTER_UNROLL
  for (int k = 0; k < kBy; ++k) first[k] = values[k];
  MUSTER_UNROLL
  for (int k = 0; k + kBy < kCount; ++k) values[k] = values[k + kBy];
  MUSTER_UNROLL
  for (int k = 0; k < kBy; ++k) values[kCount - kBy + k] = first[k];
}

// Sets a[k] = function(k, a[k], other[k]...), unrolled for kAtOnce positions.
template <int kAtOnce, typename Function, typename C, int kCount,
          typename... Others>
__device__ __forceinline__ void ForEach(const Function& function,
                                        C (&a)[kCount], Others&... other) {
  constexpr int kStep = kAtOnce < kCount ? kAtOnce : kCount;
  MUSTER_KEEP_LOOP
  for (int first = 0; first < kCount; first += kStep) {
    MUSTER_UNROLL
    for (int k = 0; k < kStep; ++k) {
      a[k] = function(first + k, a[k], other[k]...);
    }
    if constexpr (kStep < kCount) {
      Rotate<kStep>(a);
      (Rotate<kStep>(other), ...);
    }
  }
}

template <typename Function, bool kIsForFloats, typename C, int kCount>
__device__ __forceinline__ void ComputeUnary(const Function& function,
                                             C (&a)[kCount]) {
  if constexpr (!kIsForFloats || !kIsInteger<C>) {
    ForEach<kPositionsAtOnce<Function, C, kIsForFloats>>(
        [&](int, C x) { return static_cast<C>(function(x)); }, a);
  }
}

template <typename Function, bool kIsForFloats, typename C, int kCount>
__device__ __forceinline__ void ComputeBinary(const Tape& tape,
                                              const Positions<kCount>& at,
                                              const Function& function,
                                              C (&a)[kCount], C (&b)[kCount]) {
  if constexpr (!kIsForFloats || !kIsInteger<C>) {
    ForEach<kPositionsAtOnce<Function, C, kIsForFloats>>(
        [&](int k, C x, C y) {
          return ApplyBinary(tape, at[k], function, x, y);
        },
        a, b);
  }
}

// Replaces `a` by the function's values for all positions of a thread. Work
// that depends on the instruction only is done once for all positions.
template <typename C, int kCount>
__device__ __forceinline__ void Compute(const Tape& tape,
                                        const Tape::Instruction& instruction,
                                        const Positions<kCount>& at,
                                        C (&a)[kCount], C (&b)[kCount],
                                        const C (&c)[kCount]) {
  [[maybe_unused]] const double alpha = instruction.parameter;
  // Has no default, so that the compiler reports missing functions.
  switch (instruction.function) {
#define MUSTER_CASE(name)     \
  case TapeFunction::k##name: \
    return ComputeUnary<functions::name, false>({}, a);
    MUSTER_TAPE_UNARY(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)     \
  case TapeFunction::k##name: \
    return ComputeUnary<functions::name, true>({}, a);
    MUSTER_TAPE_UNARY_FLOAT(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)     \
  case TapeFunction::k##name: \
    return ComputeUnary<functions::name, true>({alpha}, a);
    MUSTER_ALPHA_FUNCTIONS(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)     \
  case TapeFunction::k##name: \
    return ComputeBinary<functions::name, false>(tape, at, {}, a, b);
    MUSTER_TAPE_BINARY(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)     \
  case TapeFunction::k##name: \
    return ComputeBinary<functions::name, true>(tape, at, {}, a, b);
    MUSTER_TAPE_BINARY_FLOAT(MUSTER_CASE)
#undef MUSTER_CASE
#define MUSTER_CASE(name)     \
  case TapeFunction::k##name: \
    return ComputeBinary<functions::name, true>(tape, at, {alpha}, a, b);
    MUSTER_ALPHA_GRADIENTS(MUSTER_CASE)
#undef MUSTER_CASE
    case TapeFunction::kCopy:
      return;
    case TapeFunction::kSelect:
      MUSTER_UNROLL
      for (int k = 0; k < kCount; ++k) a[k] = a[k] != C(0) ? b[k] : c[k];
      return;
  }
}

// Calls visit(k, pair) for each pair of positions, rounded to 16 bits.
template <typename E, typename C, int kCount, typename Visit>
__device__ __forceinline__ void VisitPairs(const C (&values)[kCount],
                                           const Visit& visit) {
  MUSTER_UNROLL
  for (int k = 0; k < kCount; k += 2) {
    visit(k, RoundedPair<E>(
                 static_cast<float>(values[k]),
                 k + 1 < kCount ? static_cast<float>(values[k + 1]) : 0.0f));
  }
}

template <typename E, int kCount>
__device__ __forceinline__ void RoundTo(float (&a)[kCount]) {
  if constexpr (sizeof(E) == 2) {
    VisitPairs<E>(a, [&](int k, uint32_t pair) {
      a[k] = Widened(BitCast<E>(static_cast<uint16_t>(pair)));
      if (k + 1 < kCount) {
        a[k + 1] = Widened(BitCast<E>(static_cast<uint16_t>(pair >> 16)));
      }
    });
  } else {
    MUSTER_UNROLL
    for (int k = 0; k < kCount; ++k) {
      a[k] = Widen<float>(ConvertNumber<E>(a[k]));
    }
  }
}

template <int kCount>
__device__ __forceinline__ void Round(ElementType type, float (&a)[kCount]) {
  if (type == ElementType::kBfloat16) RoundTo<bfloat16>(a);
  if (type == ElementType::kFloat16) RoundTo<float16>(a);
  if (type == ElementType::kBool) RoundTo<bool>(a);
}

template <typename C, int kCount>
__device__ __forceinline__ void RunInstruction(
    const Tape& tape, const Tape::Instruction& instruction,
    const Positions<kCount>& at, C (&accumulator)[kCount]) {
  // Uninitialized if the function has no such source, because then it does not
  // read them.
  C b[kCount];
  C c[kCount];
  ReadSource(tape, instruction, 1, at, accumulator, b);
  if (instruction.function == TapeFunction::kSelect) {
    ReadSource(tape, instruction, 2, at, accumulator, c);
  }
  ReadSource(tape, instruction, 0, at, accumulator, accumulator);
  Compute(tape, instruction, at, accumulator, b, c);
  if constexpr (kIsSame<C, float>) Round(instruction.rounded_to, accumulator);
  if (instruction.kept < 0) return;
  constexpr int kPer = kPerUnit<C>;
  Unit* const to = at.UnitsOf(tape.slots[Tape::kTemporary + instruction.kept]);
  MUSTER_UNROLL
  for (int u = 0; u < kUnits<C, kCount>; ++u) {
    ElementGroup<C, kPer> group = {};
    MUSTER_UNROLL
    for (int k = 0; k < kPer && u * kPer + k < kCount; ++k) {
      group.values[k] = accumulator[u * kPer + k];
    }
    to[u * Tape::kThreads] = BitCast<Unit>(group);
  }
}

template <typename E, typename C>
__device__ E Narrowed(C value) {
  if constexpr (sizeof(E) == 2) {
    return BitCast<E>(
        static_cast<uint16_t>(RoundedPair<E>(static_cast<float>(value), 0.0f)));
  } else {
    return ConvertNumber<E>(value);
  }
}

// Returns the elements of a run in the form in which a thread stores them.
// Elements of 16 bits are packed into words: compilers would keep each one in a
// separate register.
template <typename E, int kRun, typename C, int kCount>
__device__ __forceinline__ auto Packed(const C (&values)[kCount], int first) {
  C run[kRun];
  MUSTER_UNROLL
  for (int k = 0; k < kRun; ++k) run[k] = values[first + k];
  if constexpr (sizeof(E) == 2 && kRun > 1) {
    ElementGroup<uint32_t, kRun / 2> group;
    VisitPairs<E>(run,
                  [&](int k, uint32_t pair) { group.values[k / 2] = pair; });
    return group;
  } else {
    ElementGroup<E, kRun> group;
    MUSTER_UNROLL
    for (int k = 0; k < kRun; ++k) group.values[k] = Narrowed<E>(run[k]);
    return group;
  }
}

template <typename E, typename C, int kCount>
__device__ __forceinline__ void StoreElements(const C (&values)[kCount],
                                              const Positions<kCount>& at,
                                              void* data) {
  constexpr int kRun = Positions<kCount>::kRun;
  using Group = decltype(Packed<E, kRun>(values, 0));
  E* const to = static_cast<E*>(data) + at.first;
  if (at.is_whole && IsAlignedFor<Group>(to)) {
    MUSTER_UNROLL
    for (int k = 0; k < kCount; k += kRun) {
      *reinterpret_cast<Group*>(to + at[k] - at.first) =
          Packed<E, kRun>(values, k);
    }
    return;
  }
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (at[k] < at.end) to[at[k] - at.first] = Narrowed<E>(values[k]);
  }
}

template <typename C, int kCount>
__device__ __forceinline__ void StoreOutput(const C (&values)[kCount],
                                            const Positions<kCount>& at,
                                            const DeviceElements& output) {
  switch (output.type) {
    case ElementType::kFloat32:
      return StoreElements<float>(values, at, output.data);
    case ElementType::kFloat64:
      return StoreElements<double>(values, at, output.data);
    case ElementType::kInt32:
      return StoreElements<int32_t>(values, at, output.data);
    case ElementType::kUint8:
      return StoreElements<uint8_t>(values, at, output.data);
    case ElementType::kInt64:
      return StoreElements<int64_t>(values, at, output.data);
    case ElementType::kBool:
      return StoreElements<bool>(values, at, output.data);
    case ElementType::kBfloat16:
      return StoreElements<bfloat16>(values, at, output.data);
    case ElementType::kFloat16:
      return StoreElements<float16>(values, at, output.data);
  }
}

template <typename C, int kCount>
__device__ __forceinline__ void RunPositions(const Tape& tape) {
  constexpr int kPerBlock = kCount * Tape::kThreads;
  Positions<kCount> at;
  const int64_t block_first = static_cast<int64_t>(blockIdx.x) * kPerBlock;
  at.first = block_first + threadIdx.x * Positions<kCount>::kRun;
  at.end = tape.count;
  at.is_whole = at.end - block_first >= kPerBlock;
  if (at.first >= at.end) return;
  at.units = static_cast<Unit*>(DynamicSharedMemory()) + threadIdx.x;
  // All loads are in flight before the first instruction.
  for (int i = 0; i < tape.operand_count; ++i) {
    FetchOperand(tape.operands[i], at, at.UnitsOf(tape.slots[i]));
  }
  AwaitCopies();
  C accumulator[kCount] = {};
  for (int i = 0; i < tape.instruction_count; ++i) {
    RunInstruction(tape, tape.instructions[i], at, accumulator);
  }
  StoreOutput(accumulator, at, tape.output);
}

template <typename C>
__device__ void RunTape(const Tape& tape) {
  if (tape.positions_per_thread == Tape::kGroup<C>) {
    RunPositions<C, Tape::kGroup<C>>(tape);
  } else {
    RunPositions<C, 1>(tape);
  }
}

}  // namespace
}  // namespace muster::internal

using muster::internal::RunTape;
using muster::internal::Tape;

// Twelve blocks on a multiprocessor have enough loads in flight.
extern "C" __global__ void __launch_bounds__(Tape::kThreads, 12)
    tape_float(const __grid_constant__ Tape tape) {
  AwaitPrecedingKernel();
  RunTape<float>(tape);
}
extern "C" __global__ void __launch_bounds__(Tape::kThreads)
    tape_double(const __grid_constant__ Tape tape) {
  AwaitPrecedingKernel();
  RunTape<double>(tape);
}
extern "C" __global__ void __launch_bounds__(Tape::kThreads)
    tape_int64(const __grid_constant__ Tape tape) {
  AwaitPrecedingKernel();
  RunTape<int64_t>(tape);
}

MUSTER_SIMULATED_KERNELS(tape, MUSTER_PLAIN_KERNEL(tape_float),
                         MUSTER_PLAIN_KERNEL(tape_double),
                         MUSTER_PLAIN_KERNEL(tape_int64))
