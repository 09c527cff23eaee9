#ifndef COMMON_COMPUTE_KERNELS_CPU_BROADCAST_H_
#define COMMON_COMPUTE_KERNELS_CPU_BROADCAST_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/core/tensor/shape.h"

namespace muster {

// Iterates over operands that are broadcast together, in runs of elements.
// Within a run each operand advances with the output or stays at one element.
// Adjacent dimensions with the same behaviour in all operands are merged, so
// tensors of equal shape, a scalar operand, a row vector or a column need one
// run, or one run per row.
class BroadcastWalk {
 public:
  // `operands` must be broadcastable to `output`.
  BroadcastWalk(const Shape& output, absl::Span<const Shape* const> operands);

  // The number of elements in a run, and the stride of operand `operand`: 1 or
  // 0.
  int64_t run_length() const { return run_length_; }
  int64_t run_stride(int operand) const { return run_strides_[operand]; }

  // Calls body(output_offset, offsets) for each run. offsets[k] is the start of
  // operand k.
  template <typename Body>
  void ForEachRun(Body&& body) const;

 private:
  static constexpr int kOperandCountMax = 3;

  struct Dim {
    int64_t extent = 1;
    int64_t strides[kOperandCountMax] = {};
  };

  int operand_count_;
  int64_t run_count_ = 1;
  int64_t run_length_ = 1;
  int64_t run_strides_[kOperandCountMax] = {};
  absl::InlinedVector<Dim, 4> outer_;  // Innermost first.
};

template <typename Body>
void BroadcastWalk::ForEachRun(Body&& body) const {
  int64_t offsets[kOperandCountMax] = {};
  int64_t position[Shape::kRankMax] = {};
  for (int64_t run = 0; run < run_count_; ++run) {
    body(run * run_length_, static_cast<const int64_t*>(offsets));
    for (size_t d = 0; d < outer_.size(); ++d) {
      const Dim& dim = outer_[d];
      for (int k = 0; k < operand_count_; ++k) offsets[k] += dim.strides[k];
      if (++position[d] < dim.extent) break;
      position[d] = 0;
      for (int k = 0; k < operand_count_; ++k) {
        offsets[k] -= dim.extent * dim.strides[k];
      }
    }
  }
}

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_BROADCAST_H_
