#ifndef COMMON_CORE_TENSOR_RECURRENCE_OPTIONS_H_
#define COMMON_CORE_TENSOR_RECURRENCE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/recurrent_cell.h"

// The attributes of the ops Recurrence and RecurrenceGrad, and the operands
// that follow from them (common/compute/ops/recurrence_ops.h).
namespace muster {

struct RecurrenceOptions : RecurrenceForm {
  int64_t units = 0;
  std::string activation;
  std::string recurrent_activation;
  // True if the forward op also returns the values that its gradient needs.
  bool keep_steps = false;
  bool has_scale = false;
  bool has_mask = false;

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
//                     the cell or the activation is unknown
absl::StatusOr<RecurrenceOptions> ReadRecurrenceOptions(
    const Attributes& attributes);

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_RECURRENCE_OPTIONS_H_
