#ifndef COMMON_CORE_TENSOR_RECURRENCE_OPTIONS_H_
#define COMMON_CORE_TENSOR_RECURRENCE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/attributes.h"

// What the attributes of the ops Recurrence and RecurrenceGrad say, and which
// operands follow from it (common/compute/ops/recurrence_ops.h).
namespace muster {

enum class RecurrentCell { kSimpleRnn, kLstm, kGruResetAfter, kGruResetBefore };

struct RecurrenceOptions {
  RecurrentCell cell = RecurrentCell::kSimpleRnn;
  int64_t units = 0;
  std::string activation;
  std::string recurrent_activation;
  bool go_backwards = false;
  bool zero_output_for_mask = false;
  // The forward op also returns what its gradient needs.
  bool keep_steps = false;
  bool has_scale = false;
  bool has_mask = false;

  int state_count() const { return cell == RecurrentCell::kLstm ? 2 : 1; }
  // The widths of a step, in units: of the projected inputs ...
  int64_t gate_count() const;
  // ... and of what the forward op keeps of it.
  int64_t kept_count() const {
    return cell == RecurrentCell::kGruResetAfter ? 4 : gate_count();
  }
  bool has_recurrent_bias() const {
    return cell == RecurrentCell::kGruResetAfter;
  }
  // The width of the second output of RecurrenceGrad, in units; 0 if there is
  // none. kGruResetAfter: the gradient of h recurrent_kernel + recurrent_bias.
  // kGruResetBefore: r * h.
  int64_t product_count() const {
    if (cell == RecurrentCell::kGruResetAfter) return 3;
    return cell == RecurrentCell::kGruResetBefore ? 1 : 0;
  }

  // The numbers of inputs of both ops.
  int forward_input_count() const {
    return 2 + state_count() + has_recurrent_bias() + has_scale + has_mask;
  }
  int backward_input_count() const {
    return 4 + 2 * state_count() + has_scale + has_mask;
  }
};

// The names of the activations: Keras' names.
absl::Span<const absl::string_view> RecurrenceActivations();

// Reads and checks the attributes.
//   kInvalidArgument  an attribute is absent, units are not in [1, 2^31), or
//                     there is no such cell or activation
absl::StatusOr<RecurrenceOptions> ReadRecurrenceOptions(
    const Attributes& attributes);

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_RECURRENCE_OPTIONS_H_
