#ifndef COMMON_COMPUTE_FUNCTIONS_CELL_BODIES_H_
#define COMMON_COMPUTE_FUNCTIONS_CELL_BODIES_H_

#include "common/core/base/host_device.h"

// The arithmetic of recurrent cells: the bodies of the loops over the elements
// of a row in common/compute/kernels/recurrence.h.
namespace muster::recurrence {

// A body computes element i of arrays. Two of them may be the same array, but
// do not overlap otherwise. Bodies are always inlined: the host compiles its
// loops for several vector widths.
#define MUSTER_CELL_BODY \
  MUSTER_HOST_DEVICE __attribute__((always_inline)) static inline void

// y = a
struct Copy {
  template <typename C>
  MUSTER_CELL_BODY At(int64_t i, const C* a, C* y) {
    y[i] = a[i];
  }
};
// y = 0
struct Clear {
  template <typename C>
  MUSTER_CELL_BODY At(int64_t i, C* y) {
    y[i] = C{0};
  }
};
// y = a + b
struct RowSum {
  template <typename C>
  MUSTER_CELL_BODY At(int64_t i, const C* a, const C* b, C* y) {
    y[i] = a[i] + b[i];
  }
};
// y = a * b
struct Multiply {
  template <typename C>
  MUSTER_CELL_BODY At(int64_t i, const C* a, const C* b, C* y) {
    y[i] = a[i] * b[i];
  }
};
// y = a * b + c
struct MultiplyAdd {
  template <typename C>
  MUSTER_CELL_BODY At(int64_t i, const C* a, const C* b, const C* c, C* y) {
    y[i] = a[i] * b[i] + c[i];
  }
};
// The cell of an LSTM: f * c + i * g.
struct LstmCell {
  template <typename C>
  MUSTER_CELL_BODY At(int64_t i, int64_t units, const C* gates, const C* before,
                      C* after) {
    after[i] = gates[units + i] * before[i] + gates[i] * gates[2 * units + i];
  }
};
// The gradients of the gates i, f and g and of the cell before the step, from
// that of the cell after it, which is the sum of `dc` and `through_output`.
struct LstmCellGrad {
  template <typename C>
  MUSTER_CELL_BODY At(int64_t i, int64_t units, const C* gates, const C* before,
                      const C* through_output, C* dc, C* dgates) {
    const C gradient = dc[i] + through_output[i];
    dgates[i] = gradient * gates[2 * units + i];
    dgates[units + i] = gradient * before[i];
    dgates[2 * units + i] = gradient * gates[i];
    dc[i] = gradient * gates[units + i];
  }
};
// The state of a GRU: z * h + (1 - z) * g.
struct GruState {
  template <typename C>
  MUSTER_CELL_BODY At(int64_t i, const C* z, const C* h, const C* g, C* after) {
    after[i] = z[i] * h[i] + (1 - z[i]) * g[i];
  }
};
struct GruStateGrad {
  template <typename C>
  MUSTER_CELL_BODY At(int64_t i, const C* z, const C* h, const C* g,
                      const C* dh, C* dz, C* dg, C* direct) {
    dz[i] = dh[i] * (h[i] - g[i]);
    dg[i] = dh[i] * (1 - z[i]);
    direct[i] = dh[i] * z[i];
  }
};

}  // namespace muster::recurrence

#endif  // COMMON_COMPUTE_FUNCTIONS_CELL_BODIES_H_
