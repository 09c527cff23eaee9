#include "common/learn/train/job/job_sequence_layers.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/recurrent/recurrent_layer.h"
#include "common/learn/train/job/job_layer_parts.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobLayer;

// What the options of all recurrent layers have.
template <typename Options>
absl::StatusOr<Options> CommonOptions(absl::string_view kind,
                                      const std::string& name,
                                      const JobLayer::Recurrent& job) {
  RETURN_IF_ERROR(ExpectPositive(absl::StrCat(kind, ".units"), job.units()));
  Options options{.name = name};
  if (job.has_activation()) {
    ASSIGN_OR_RETURN(options.activation, ToActivation(job.activation()));
  }
  if (job.has_use_bias()) options.use_bias = job.use_bias();
  options.kernel_initializer =
      ToInitializer(job.kernel_initializer(), options.kernel_initializer);
  options.recurrent_initializer =
      ToInitializer(job.recurrent_initializer(), options.recurrent_initializer);
  options.bias_initializer =
      ToInitializer(job.bias_initializer(), options.bias_initializer);
  ASSIGN_OR_RETURN(options.kernel_regularizer,
                   ToRegularizer(absl::StrCat(kind, ".kernel_regularizer"),
                                 job.kernel_regularizer()));
  ASSIGN_OR_RETURN(options.recurrent_regularizer,
                   ToRegularizer(absl::StrCat(kind, ".recurrent_regularizer"),
                                 job.recurrent_regularizer()));
  ASSIGN_OR_RETURN(options.bias_regularizer,
                   ToRegularizer(absl::StrCat(kind, ".bias_regularizer"),
                                 job.bias_regularizer()));
  options.sequence = {.dropout = job.dropout(),
                      .recurrent_dropout = job.recurrent_dropout(),
                      .return_sequences = job.return_sequences(),
                      .go_backwards = job.go_backwards(),
                      .seed = job.seed()};
  return options;
}

absl::Status ExpectAbsent(absl::string_view kind, absl::string_view field,
                          bool is_present) {
  if (!is_present) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kind, " has no ", field, "; remove it"));
}

absl::StatusOr<LayerPtr> BuildSimpleRnn(const std::string& name,
                                        const JobLayer::Recurrent& job) {
  const absl::string_view kind = "simple_rnn";
  RETURN_IF_ERROR(ExpectAbsent(kind, "recurrent_activation",
                               job.has_recurrent_activation()));
  RETURN_IF_ERROR(
      ExpectAbsent(kind, "unit_forget_bias", job.has_unit_forget_bias()));
  RETURN_IF_ERROR(ExpectAbsent(kind, "reset_after", job.has_reset_after()));
  ASSIGN_OR_RETURN(const SimpleRNNOptions options,
                   CommonOptions<SimpleRNNOptions>(kind, name, job));
  return SimpleRNN(job.units(), options);
}

absl::StatusOr<LayerPtr> BuildLstm(const std::string& name,
                                   const JobLayer::Recurrent& job) {
  RETURN_IF_ERROR(ExpectAbsent("lstm", "reset_after", job.has_reset_after()));
  ASSIGN_OR_RETURN(LSTMOptions options,
                   CommonOptions<LSTMOptions>("lstm", name, job));
  if (job.has_recurrent_activation()) {
    ASSIGN_OR_RETURN(options.recurrent_activation,
                     ToActivation(job.recurrent_activation()));
  }
  if (job.has_unit_forget_bias()) {
    options.unit_forget_bias = job.unit_forget_bias();
  }
  return LSTM(job.units(), options);
}

absl::StatusOr<LayerPtr> BuildGru(const std::string& name,
                                  const JobLayer::Recurrent& job) {
  RETURN_IF_ERROR(
      ExpectAbsent("gru", "unit_forget_bias", job.has_unit_forget_bias()));
  ASSIGN_OR_RETURN(GRUOptions options,
                   CommonOptions<GRUOptions>("gru", name, job));
  if (job.has_recurrent_activation()) {
    ASSIGN_OR_RETURN(options.recurrent_activation,
                     ToActivation(job.recurrent_activation()));
  }
  if (job.has_reset_after()) options.reset_after = job.reset_after();
  return GRU(job.units(), options);
}

absl::StatusOr<LayerPtr> BuildAttention(
    const std::string& name, const JobLayer::MultiHeadAttention& job) {
  RETURN_IF_ERROR(
      ExpectPositive("multi_head_attention.num_heads", job.num_heads()));
  RETURN_IF_ERROR(
      ExpectPositive("multi_head_attention.key_dim", job.key_dim()));
  MultiHeadAttentionOptions options{
      .dropout = job.dropout(),
      .takes_attention_mask = job.takes_attention_mask(),
      .use_causal_mask = job.use_causal_mask(),
      .seed = job.seed(),
      .name = name};
  if (job.has_value_dim()) options.value_dim = job.value_dim();
  if (job.has_output_dim()) options.output_dim = job.output_dim();
  if (job.has_use_bias()) options.use_bias = job.use_bias();
  options.kernel_initializer =
      ToInitializer(job.kernel_initializer(), options.kernel_initializer);
  options.bias_initializer =
      ToInitializer(job.bias_initializer(), options.bias_initializer);
  ASSIGN_OR_RETURN(options.kernel_regularizer,
                   ToRegularizer("multi_head_attention.kernel_regularizer",
                                 job.kernel_regularizer()));
  ASSIGN_OR_RETURN(options.bias_regularizer,
                   ToRegularizer("multi_head_attention.bias_regularizer",
                                 job.bias_regularizer()));
  return MultiHeadAttention(job.num_heads(), job.key_dim(), options);
}

}  // namespace

absl::StatusOr<LayerPtr> BuildJobSequenceLayer(const JobLayer& layer) {
  switch (layer.kind_case()) {
    case JobLayer::kSimpleRnn:
      return BuildSimpleRnn(layer.name(), layer.simple_rnn());
    case JobLayer::kLstm:
      return BuildLstm(layer.name(), layer.lstm());
    case JobLayer::kGru:
      return BuildGru(layer.name(), layer.gru());
    case JobLayer::kMultiHeadAttention:
      return BuildAttention(layer.name(), layer.multi_head_attention());
    default:
      break;
  }
  return absl::InvalidArgumentError("is no layer for sequences");
}

}  // namespace muster
