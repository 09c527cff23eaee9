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
  // The width of the projected inputs of a step, in units.
  MUSTER_HOST_DEVICE int64_t gate_count() const {
    return cell == RecurrentCell::kSimpleRnn ? 1
           : cell == RecurrentCell::kLstm    ? 4
                                             : 3;
  }
  // The width of the values of a step that the forward op keeps, in units.
  MUSTER_HOST_DEVICE int64_t kept_count() const {
    return cell == RecurrentCell::kGruResetAfter ? 4 : gate_count();
  }
  // The number of gates that multiply the recurrent kernel by the output of the
  // previous step, h. The other gate of kGruResetBefore multiplies it by r * h.
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
