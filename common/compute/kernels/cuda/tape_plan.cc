#include "common/compute/kernels/cuda/tape_plan.h"

#include <algorithm>
#include <cstdint>

#include "common/core/tensor/dtype.h"

namespace muster::internal {
namespace {

int BytesOf(ElementType type) {
  return static_cast<int>(SizeOf(static_cast<DType>(type)));
}

bool IsMultiple(int64_t value, int64_t of) { return value % of == 0; }

Tape::Access AccessOf(const Tape::Operand& operand) {
  const DeviceLayout& layout = operand.layout;
  const int last = layout.rank - 1;
  if (last < 0 || (last == 0 && layout.strides[0] == 0)) {
    return Tape::Access::kScalar;
  }
  const int64_t bytes = operand.element_bytes;
  const int64_t alignment =
      std::min<int64_t>(Tape::kRun * bytes, Tape::kUnitBytes);
  bool is_run = layout.strides[last] == 1 &&
                IsMultiple(static_cast<int64_t>(reinterpret_cast<uintptr_t>(
                               operand.elements.data)) +
                               layout.offset * bytes,
                           alignment);
  for (int axis = 0; axis < last; ++axis) {
    is_run &= IsMultiple(layout.strides[axis] * bytes, alignment);
  }
  if (!is_run) return Tape::Access::kEach;
  if (last == 0) return Tape::Access::kDense;
  if (!IsMultiple(layout.extents[last], Tape::kRun)) return Tape::Access::kEach;
  return last == 1 && layout.strides[0] == 0 ? Tape::Access::kRow
                                             : Tape::Access::kRuns;
}

}  // namespace

LaunchShape PlaceSlots(ElementType compute_type, Tape* tape) {
  const int positions = tape->positions_per_thread;
  int unit_count = 0;
  const auto place = [&](int source, ElementType type) {
    tape->slots[source] = {type, static_cast<uint8_t>(unit_count)};
    unit_count +=
        (positions * BytesOf(type) + Tape::kUnitBytes - 1) / Tape::kUnitBytes;
  };
  for (int i = 0; i < tape->operand_count; ++i) {
    Tape::Operand& operand = tape->operands[i];
    const ElementType type = operand.elements.type;
    operand.element_bytes = static_cast<uint8_t>(BytesOf(type));
    operand.access = AccessOf(operand);
    if (operand.access == Tape::Access::kRow) {
      constexpr int64_t kRunStride = Tape::kRun * Tape::kThreads;
      operand.row_step =
          static_cast<uint32_t>(kRunStride % operand.layout.extents[1]);
    }
    place(i, type);
  }
  int temporary_count = 0;
  for (int i = 0; i < tape->instruction_count; ++i) {
    temporary_count =
        std::max<int>(temporary_count, tape->instructions[i].kept + 1);
  }
  for (int i = 0; i < temporary_count; ++i) {
    place(Tape::kTemporary + i, compute_type);
  }
  const int64_t per_block = int64_t{Tape::kThreads} * positions;
  LaunchShape shape;
  shape.grid[0] =
      static_cast<uint32_t>((tape->count + per_block - 1) / per_block);
  shape.block[0] = Tape::kThreads;
  shape.shared_bytes =
      static_cast<uint32_t>(unit_count * Tape::kUnitBytes * Tape::kThreads);
  return shape;
}

}  // namespace muster::internal
