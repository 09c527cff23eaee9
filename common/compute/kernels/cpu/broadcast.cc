#include "common/compute/kernels/cpu/broadcast.h"

#include "common/core/base/check.h"

namespace muster {

BroadcastWalk::BroadcastWalk(const Shape& output,
                             absl::Span<const Shape* const> operands)
    : operand_count_(static_cast<int>(operands.size())) {
  MUSTER_CHECK(operand_count_ <= kOperandCountMax);
  // Proceeds from the innermost dimension outwards. A dimension is merged with
  // the next inner one if every operand is contiguous across both.
  int64_t sizes[kOperandCountMax];  // Elements of each operand so far.
  for (int64_t& size : sizes) size = 1;
  absl::InlinedVector<Dim, Shape::kRankMax> dims;
  for (int axis = output.rank() - 1; axis >= 0; --axis) {
    Dim dim;
    dim.extent = output.dim(axis);
    if (dim.extent == 0) run_count_ = 0;
    if (dim.extent <= 1) continue;
    bool joins = !dims.empty();
    for (int k = 0; k < operand_count_; ++k) {
      const int operand_axis = axis - output.rank() + operands[k]->rank();
      const int64_t extent =
          operand_axis < 0 ? 1 : operands[k]->dim(operand_axis);
      dim.strides[k] = extent == 1 ? 0 : sizes[k];
      sizes[k] *= extent;
      joins = joins &&
              dim.strides[k] == dims.back().strides[k] * dims.back().extent;
    }
    if (joins) {
      dims.back().extent *= dim.extent;
    } else {
      dims.push_back(dim);
    }
  }
  if (dims.empty()) return;
  run_length_ = dims[0].extent;
  for (int k = 0; k < operand_count_; ++k) {
    run_strides_[k] = dims[0].strides[k];
  }
  outer_.assign(dims.begin() + 1, dims.end());
  for (const Dim& dim : outer_) run_count_ *= dim.extent;
}

}  // namespace muster
