#ifndef COMMON_COMPUTE_KERNELS_CPU_BROADCAST_H_
#define COMMON_COMPUTE_KERNELS_CPU_BROADCAST_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/core/tensor/shape.h"

namespace muster {

// How to walk several operands that are broadcast together: as runs of elements
// in which each operand either moves along with the output or stands still.
// Neighbouring dimensions that all operands treat alike are one, so tensors of
// equal shape, a scalar operand, a row vector and a column all come down to one
// run, or to one run per row.
class BroadcastWalk {
 public:
  // `operands` can be broadcast to `output`.
  BroadcastWalk(const Shape& output, absl::Span<const Shape* const> operands);

  // Elements in a run, and how far operand `operand` moves per element: 1 or 0.
  int64_t run_length() const { return run_length_; }
  int64_t run_stride(int operand) const { return run_strides_[operand]; }

  // Calls body(output_offset, offsets) for each run; offsets[k] is where
  // operand k begins.
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
