#include "common/core/tensor/recurrence_options.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"

namespace muster {
namespace {

absl::StatusOr<RecurrentCell> FindCell(absl::string_view name) {
  if (name == "simple_rnn") return RecurrentCell::kSimpleRnn;
  if (name == "lstm") return RecurrentCell::kLstm;
  if (name == "gru_reset_after") return RecurrentCell::kGruResetAfter;
  if (name == "gru_reset_before") return RecurrentCell::kGruResetBefore;
  return absl::InvalidArgumentError(absl::StrCat(
      "attribute \"cell\" must be simple_rnn, lstm, gru_reset_after or "
      "gru_reset_before, not \"",
      name, "\""));
}

absl::StatusOr<std::string> ActivationAttribute(const Attributes& attributes,
                                                absl::string_view name) {
  ASSIGN_OR_RETURN(const std::string value, attributes.Get<std::string>(name));
  const auto known = RecurrenceActivations();
  if (std::find(known.begin(), known.end(), value) != known.end()) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      "attribute \"", name, "\": there is no activation \"", value, "\""));
}

}  // namespace

absl::Span<const absl::string_view> RecurrenceActivations() {
  static constexpr absl::string_view kNames[] = {"linear",
                                                 "relu",
                                                 "relu6",
                                                 "sigmoid",
                                                 "tanh",
                                                 "softplus",
                                                 "softsign",
                                                 "softmax",
                                                 "log_softmax",
                                                 "gelu",
                                                 "elu",
                                                 "gelu_approximate",
                                                 "selu",
                                                 "silu",
                                                 "leaky_relu",
                                                 "hard_sigmoid",
                                                 "exponential",
                                                 "mish",
                                                 "celu",
                                                 "hard_silu",
                                                 "hard_tanh",
                                                 "hard_shrink",
                                                 "soft_shrink",
                                                 "tanh_shrink",
                                                 "log_sigmoid",
                                                 "squareplus",
                                                 "sparse_plus",
                                                 "sparse_sigmoid",
                                                 "hard_sigmoid_keras2"};
  return kNames;
}

absl::StatusOr<RecurrenceOptions> ReadRecurrenceOptions(
    const Attributes& attributes) {
  RecurrenceOptions options;
  ASSIGN_OR_RETURN(const std::string cell, attributes.Get<std::string>("cell"));
  ASSIGN_OR_RETURN(options.cell, FindCell(cell));
  ASSIGN_OR_RETURN(options.units, attributes.Get<int64_t>("units"));
  if (options.units < 1 || options.units >= int64_t{1} << 31) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attribute \"units\" is ", options.units, "; it must be in [1, 2^31)"));
  }
  ASSIGN_OR_RETURN(options.activation,
                   ActivationAttribute(attributes, "activation"));
  ASSIGN_OR_RETURN(options.recurrent_activation,
                   ActivationAttribute(attributes, "recurrent_activation"));
  ASSIGN_OR_RETURN(options.go_backwards, attributes.Get<bool>("go_backwards"));
  ASSIGN_OR_RETURN(options.zero_output_for_mask,
                   attributes.Get<bool>("zero_output_for_mask"));
  ASSIGN_OR_RETURN(options.keep_steps, attributes.Get<bool>("keep_steps"));
  ASSIGN_OR_RETURN(options.has_scale, attributes.Get<bool>("has_scale"));
  ASSIGN_OR_RETURN(options.has_mask, attributes.Get<bool>("has_mask"));
  return options;
}

}  // namespace muster
