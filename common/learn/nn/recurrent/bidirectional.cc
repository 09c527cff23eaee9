#include "common/learn/nn/recurrent/bidirectional.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/recurrent/recurrent_layer.h"

namespace muster {
namespace {

// Null if `layer` is null or not recurrent.
RecurrentLayer* AsRecurrent(const LayerPtr& layer) {
  return dynamic_cast<RecurrentLayer*>(layer.get());
}

std::string Prefixed(absl::string_view prefix, const Layer& layer) {
  const std::string name =
      layer.name().empty() ? ToSnakeCase(layer.kind()) : layer.name();
  return absl::StrCat(prefix, absl::StripPrefix(name, prefix));
}

}  // namespace

BidirectionalLayer::BidirectionalLayer(const LayerPtr& layer,
                                       const BidirectionalOptions& options)
    : WrapperLayer(options.name),
      forward_(layer),
      backward_(options.backward_layer),
      merge_mode_(options.merge_mode) {
  Adopt();
}

void BidirectionalLayer::Adopt() {
  if (!layers().empty() || AsRecurrent(forward_) == nullptr) return;
  forward_->set_name(Prefixed("forward_", *forward_));
  if (backward_ == nullptr) {
    backward_ = AsRecurrent(forward_)->Reversed();
    backward_->set_dtype_policy(forward_->dtype_policy());
    backward_->set_trainable(forward_->trainable());
    backward_->set_activity_regularizer(forward_->activity_regularizer());
    backward_->set_name(absl::StrCat(
        "backward_", absl::StripPrefix(forward_->name(), "forward_")));
  }
  AddLayer(forward_);
  AddLayer(backward_);
  for (const LayerPtr& layer : {forward_, backward_}) {
    RecurrentLayer* const recurrent = AsRecurrent(layer);
    if (recurrent == nullptr) continue;
    recurrent->set_zero_output_for_mask(
        recurrent->sequence_options().return_sequences);
  }
}

std::string BidirectionalLayer::Mistake() const {
  const RecurrentLayer* const forward = AsRecurrent(forward_);
  if (forward == nullptr) {
    return absl::StrCat("must be a SimpleRNN, LSTM or GRU, got ",
                        forward_ == nullptr ? "none" : forward_->kind());
  }
  const RecurrentLayer* const backward = AsRecurrent(backward_);
  if (backward == nullptr) {
    return absl::StrCat(
        "has a backward layer that must be recurrent, too; got ",
        backward_->kind());
  }
  const SequenceOptions& a = forward->sequence_options();
  const SequenceOptions& b = backward->sequence_options();
  if (a.go_backwards == b.go_backwards) {
    return "and the backward layer must differ in go_backwards";
  }
  if (a.return_sequences != b.return_sequences ||
      a.return_state != b.return_state || a.stateful != b.stateful) {
    return "and the backward layer must have the same return_sequences, "
           "return_state and stateful";
  }
  return "";
}

void BidirectionalLayer::VisitConfig(ConfigVisitor& visitor) {
  static constexpr absl::string_view kMerges[] = {"concat", "sum", "mul", "ave",
                                                  "none"};
  visitor.Visit(Described("layer", "simple_rnn, lstm or gru."), forward_);
  visitor.Visit(Described("merge_mode", "NONE: two outputs."), merge_mode_,
                kMerges);
  visitor.Visit(Described("backward_layer",
                          "Absent: like the layer, in the other direction."),
                backward_);
  Adopt();
  if (const std::string mistake = Mistake(); !mistake.empty()) {
    visitor.Refuse("layer", mistake);
  }
}

std::vector<WrapperLayer::Part> BidirectionalLayer::parts() const {
  if (layers().empty()) return {};
  return {{"forward_layer", forward_}, {"backward_layer", backward_}};
}

int BidirectionalLayer::output_count() const {
  const int merged_count = merge_mode_ == BidirectionalMerge::kNone ? 2 : 1;
  if (!Mistake().empty()) return merged_count;
  return merged_count + 2 * (forward_->output_count() - 1);
}

void BidirectionalLayer::Merge(Value forward, Value backward,
                               std::vector<Value>* outputs) const {
  switch (merge_mode_) {
    case BidirectionalMerge::kConcat:
      return outputs->push_back(Concat({forward, backward}, -1));
    case BidirectionalMerge::kSum:
      return outputs->push_back(forward + backward);
    case BidirectionalMerge::kMul:
      return outputs->push_back(forward * backward);
    case BidirectionalMerge::kAve:
      return outputs->push_back((forward + backward) / 2.0);
    case BidirectionalMerge::kNone:
      outputs->push_back(forward);
      outputs->push_back(backward);
      return;
  }
}

std::vector<Value> BidirectionalLayer::CallMany(absl::Span<const Value> inputs,
                                                const CallContext& context) {
  const std::vector<Value> poisoned(output_count());
  const auto refuse = [&](absl::string_view why) {
    inputs[0].builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("Bidirectional ", name(), ": ", why)));
    return poisoned;
  };
  if (const std::string mistake = Mistake(); !mistake.empty()) {
    return refuse(absl::StrCat("the layer ", mistake));
  }
  const bool has_mask =
      inputs.size() > 1 && inputs.back().dtype() == DType::kBool;
  const absl::Span<const Value> states =
      inputs.subspan(1, inputs.size() - 1 - (has_mask ? 1 : 0));
  if (states.size() % 2 != 0) {
    return refuse(absl::StrCat(
        "expected the same number of initial states for both directions, got ",
        states.size(), " in all"));
  }
  const auto call = [&](const LayerPtr& layer, absl::Span<const Value> half) {
    std::vector<Value> own = {inputs[0]};
    own.insert(own.end(), half.begin(), half.end());
    if (has_mask) own.push_back(inputs.back());
    return layer->CallAll(own, context);
  };
  const size_t half_count = states.size() / 2;
  const std::vector<Value> forward = call(forward_, states.first(half_count));
  const std::vector<Value> backward =
      call(backward_, states.subspan(half_count));
  if (!forward[0].ok() || !backward[0].ok()) return poisoned;

  const bool is_sequence =
      AsRecurrent(forward_)->sequence_options().return_sequences;
  std::vector<Value> outputs;
  Merge(forward[0], is_sequence ? Reverse(backward[0], {1}) : backward[0],
        &outputs);
  for (const Value& output : outputs) {
    context.masks->Set(output, context.masks->Find(forward[0]));
  }
  outputs.insert(outputs.end(), forward.begin() + 1, forward.end());
  outputs.insert(outputs.end(), backward.begin() + 1, backward.end());
  return outputs;
}

LayerPtr Bidirectional(const LayerPtr& layer,
                       const BidirectionalOptions& options) {
  return std::make_shared<BidirectionalLayer>(layer, options);
}

}  // namespace muster
