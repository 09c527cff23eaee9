#ifndef COMMON_CORE_TENSOR_RECURRENT_CELL_H_
#define COMMON_CORE_TENSOR_RECURRENT_CELL_H_

#include "common/core/base/host_device.h"

namespace muster {

enum class RecurrentCell { kSimpleRnn, kLstm, kGruResetAfter, kGruResetBefore };

// The body of the loops over time of a recurrent layer, on the host and in
// device kernels.
struct RecurrenceForm {
  RecurrentCell cell = RecurrentCell::kSimpleRnn;
  bool go_backwards = false;
  bool zero_output_for_mask = false;

  MUSTER_HOST_DEVICE int state_count() const {
    return cell == RecurrentCell::kLstm ? 2 : 1;
  }
  // The widths of a step, in units: of the projected inputs ...
  MUSTER_HOST_DEVICE int64_t gate_count() const {
    return cell == RecurrentCell::kSimpleRnn ? 1
           : cell == RecurrentCell::kLstm    ? 4
                                             : 3;
  }
  // ... and of what the forward op keeps of it.
  MUSTER_HOST_DEVICE int64_t kept_count() const {
    return cell == RecurrentCell::kGruResetAfter ? 4 : gate_count();
  }
  // The gates whose products with the recurrent kernel see the output of the
  // step before. The other one of kGruResetBefore sees r * h.
  MUSTER_HOST_DEVICE int64_t product_gate_count() const {
    return cell == RecurrentCell::kGruResetBefore ? 2 : gate_count();
  }
  MUSTER_HOST_DEVICE bool has_recurrent_bias() const {
    return cell == RecurrentCell::kGruResetAfter;
  }
  // The width of the second output of RecurrenceGrad, in units; 0 if there is
  // none. kGruResetAfter: the gradient of h recurrent_kernel + recurrent_bias.
  // kGruResetBefore: r * h.
  MUSTER_HOST_DEVICE int64_t product_count() const {
    if (cell == RecurrentCell::kGruResetAfter) return 3;
    return cell == RecurrentCell::kGruResetBefore ? 1 : 0;
  }
};

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_RECURRENT_CELL_H_
