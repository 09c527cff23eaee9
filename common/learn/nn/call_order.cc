#include "common/learn/nn/call_order.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/layer.h"

namespace muster::internal {
namespace {

using CallPtr = std::shared_ptr<const LayerCall>;

std::string DisplayName(const Layer& layer) {
  return layer.name().empty() ? layer.kind() : layer.name();
}

// A depth-first traversal from the outputs to the inputs. It has an explicit
// stack because models can be deeper than the call stack of a thread allows.
class Walk {
 public:
  explicit Walk(const LayerOutputs& inputs)
      : inputs_(inputs.begin(), inputs.end()) {}

  absl::Status From(const LayerOutput& output) {
    RETURN_IF_ERROR(Enter(output));
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const LayerOutputs& needed = frame.call->inputs;
      if (frame.next == needed.size()) {
        calls_.push_back(frame.call);
        stack_.pop_back();
        continue;
      }
      const LayerOutput next = needed[frame.next++];
      RETURN_IF_ERROR(Enter(next));
    }
    return absl::OkStatus();
  }

  const std::vector<CallPtr>& calls() const { return calls_; }
  // The index of each layer in the order of discovery.
  const absl::flat_hash_map<const Layer*, int>& ranks() const { return ranks_; }

 private:
  struct Frame {
    CallPtr call;
    size_t next = 0;
  };

  absl::Status Enter(const LayerOutput& output) {
    const CallPtr& call = output.call();
    if (call == nullptr) {
      return absl::InvalidArgumentError(
          "a functional model has an input or output that belongs to no layer");
    }
    const bool is_given = inputs_.contains(output);
    const bool is_input = call->inputs.empty();
    if (is_input && !is_given) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an output of the functional model depends on ",
          DisplayName(*call->layer), ", which is not among its inputs"));
    }
    // An output of a layer outside the model.
    if (is_given && !is_input) return absl::OkStatus();
    if (!seen_.insert(call.get()).second) return absl::OkStatus();
    ranks_.emplace(call->layer.get(), static_cast<int>(ranks_.size()));
    stack_.push_back({call});
    return absl::OkStatus();
  }

  const absl::flat_hash_set<LayerOutput> inputs_;
  std::vector<Frame> stack_;
  absl::flat_hash_set<const LayerCall*> seen_;
  absl::flat_hash_map<const Layer*, int> ranks_;
  std::vector<CallPtr> calls_;
};

// Returns the length of the longest path from each layer to the outputs.
absl::flat_hash_map<const Layer*, int> Depths(
    const std::vector<CallPtr>& calls) {
  absl::flat_hash_map<const Layer*, int> layer_depths;
  absl::flat_hash_map<const LayerCall*, int> call_depths;
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    int& layer_depth = layer_depths[(*call)->layer.get()];
    layer_depth = std::max(layer_depth, call_depths[call->get()]);
    for (const LayerOutput& input : (*call)->inputs) {
      int& depth = call_depths[input.call().get()];
      depth = std::max(depth, layer_depth + 1);
    }
  }
  return layer_depths;
}

absl::Status CheckNames(const std::vector<LayerPtr>& layers) {
  absl::flat_hash_set<std::string> names;
  for (const LayerPtr& layer : layers) {
    if (layer->name().empty() || names.insert(layer->name()).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("two layers of the functional model are named \"",
                     layer->name(), "\"; names must differ"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CallOrder> OrderCalls(const LayerOutputs& inputs,
                                     const LayerOutputs& outputs) {
  if (inputs.empty() || outputs.empty()) {
    return absl::InvalidArgumentError(
        "a functional model needs an input and an output");
  }
  Walk walk(inputs);
  for (const LayerOutput& output : outputs) {
    RETURN_IF_ERROR(walk.From(output));
  }

  CallOrder order{.calls = walk.calls()};
  absl::flat_hash_map<const Layer*, int> depths = Depths(order.calls);
  absl::flat_hash_map<const Layer*, int> ranks = walk.ranks();
  // Inputs that no output depends on.
  for (const LayerOutput& input : inputs) {
    if (input.call() == nullptr) {
      return absl::InvalidArgumentError(
          "a functional model has an input that belongs to no layer");
    }
    if (!input.call()->inputs.empty()) continue;
    if (!depths.emplace(input.call()->layer.get(), 0).second) continue;
    ranks[input.call()->layer.get()] = -1;
    order.calls.push_back(input.call());
  }

  absl::flat_hash_set<const Layer*> seen;
  for (const CallPtr& call : order.calls) {
    if (seen.insert(call->layer.get()).second) {
      order.layers.push_back(call->layer);
    }
  }
  std::stable_sort(order.layers.begin(), order.layers.end(),
                   [&](const LayerPtr& a, const LayerPtr& b) {
                     return std::make_pair(-depths[a.get()], ranks[a.get()]) <
                            std::make_pair(-depths[b.get()], ranks[b.get()]);
                   });
  RETURN_IF_ERROR(CheckNames(order.layers));
  return order;
}

}  // namespace muster::internal
