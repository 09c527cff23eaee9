#include "common/learn/train/base/layer_optimizers.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/status_macros.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

// The maximal number of layers that an error lists.
constexpr size_t kNamedCountMax = 10;

bool HasPrefix(absl::string_view weight, absl::string_view prefix) {
  return absl::StartsWith(weight, prefix) &&
         (weight.size() == prefix.size() || weight[prefix.size()] == '/');
}

absl::Status InvalidPrefix(absl::string_view prefix, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("layer_optimizers: prefix \"", prefix, "\" ", why));
}

// Returns all valid prefixes of these weights: "a", "a/b", "a/b/kernel".
std::set<absl::string_view> PathsTo(absl::Span<const Weight> weights) {
  std::set<absl::string_view> paths;
  for (const Weight& weight : weights) {
    const absl::string_view name = weight.name();
    for (size_t end = name.find('/'); end != absl::string_view::npos;
         end = name.find('/', end + 1)) {
      paths.insert(name.substr(0, end));
    }
    paths.insert(name);
  }
  return paths;
}

// Returns a clause that suggests valid prefixes in place of `prefix`, which
// matches no trainable weight.
std::string Candidates(absl::string_view prefix,
                       absl::Span<const Weight> trainable) {
  const std::set<absl::string_view> paths = PathsTo(trainable);
  std::string near = DidYouMean(
      prefix, std::vector<absl::string_view>(paths.begin(), paths.end()));
  if (!near.empty()) return near;
  std::vector<absl::string_view> outermost;
  for (const absl::string_view path : paths) {
    if (!absl::StrContains(path, '/')) outermost.push_back(path);
  }
  const size_t count = std::min(outermost.size(), kNamedCountMax);
  return absl::StrCat(
      "; trainable weights are in: ",
      absl::StrJoin(outermost.begin(), outermost.begin() + count, ", "),
      count < outermost.size() ? ", ..." : "");
}

}  // namespace

ModelOptimizers::ModelOptimizers(Optimizer optimizer,
                                 std::vector<LayerOptimizer> by_layer)
    : default_(std::move(optimizer)), by_layer_(std::move(by_layer)) {}

absl::Status ModelOptimizers::Check() const {
  if (!by_layer_.empty() && !default_.has_rule()) {
    return absl::InvalidArgumentError(
        "layer_optimizers needs an optimizer beside it, for the other weights "
        "and as that of iterations and the learning rate");
  }
  std::set<absl::string_view> prefixes;
  for (const LayerOptimizer& layer : by_layer_) {
    if (layer.prefix.empty() || layer.prefix.back() == '/' ||
        layer.prefix.front() == '/') {
      return InvalidPrefix(layer.prefix,
                           "is not the path of a layer; expected for example "
                           "\"backbone\" or \"backbone/conv1\"");
    }
    if (!prefixes.insert(layer.prefix).second) {
      return InvalidPrefix(layer.prefix, "occurs twice");
    }
    if (!layer.optimizer.has_rule()) {
      return InvalidPrefix(
          layer.prefix,
          "has no optimizer; to leave layers as they are, freeze them "
          "(set_trainable(false))");
    }
    if (layer.optimizer.message().has_loss_scale()) {
      return InvalidPrefix(layer.prefix,
                           "has a loss scale of its own; there is one for the "
                           "whole model, that of `optimizer`");
    }
  }
  return absl::OkStatus();
}

absl::Status ModelOptimizers::CheckMatch(
    absl::Span<const Weight> weights) const {
  if (by_layer_.empty()) return absl::OkStatus();
  const std::vector<Weight> trainable =
      TrainableOf({weights.begin(), weights.end()});
  for (const LayerOptimizer& layer : by_layer_) {
    const auto matches = [&](const Weight& weight) {
      return HasPrefix(weight.name(), layer.prefix);
    };
    if (std::any_of(trainable.begin(), trainable.end(), matches)) continue;
    if (std::any_of(weights.begin(), weights.end(), matches)) {
      return InvalidPrefix(layer.prefix,
                           "has no trainable weight: its layers are frozen");
    }
    return InvalidPrefix(layer.prefix,
                         absl::StrCat("matches no weight of the model",
                                      Candidates(layer.prefix, trainable)));
  }
  return absl::OkStatus();
}

int ModelOptimizers::IndexOf(absl::string_view weight) const {
  int found = -1;
  for (size_t i = 0; i < by_layer_.size(); ++i) {
    const std::string& prefix = by_layer_[i].prefix;
    if (!HasPrefix(weight, prefix)) continue;
    if (found < 0 || prefix.size() > by_layer_[found].prefix.size()) {
      found = static_cast<int>(i);
    }
  }
  return found;
}

const Optimizer& ModelOptimizers::Of(absl::string_view weight) const {
  const int index = IndexOf(weight);
  return index < 0 ? default_ : by_layer_[index].optimizer;
}

ClippingOfWeight ModelOptimizers::clipping() const {
  return [optimizers = *this](const Weight& weight) -> GradientClipping {
    const int index = optimizers.IndexOf(weight.name());
    const proto::Optimizer& optimizer = optimizers.Of(weight.name()).message();
    return {.clipvalue = optimizer.clipvalue(),
            .clipnorm = optimizer.clipnorm(),
            .global_clipnorm = optimizer.global_clipnorm(),
            .norm_group = index + 1};
  };
}

bool ModelOptimizers::use_ema() const {
  return default_.message().use_ema() ||
         std::any_of(by_layer_.begin(), by_layer_.end(),
                     [](const LayerOptimizer& layer) {
                       return layer.optimizer.message().use_ema();
                     });
}

absl::Status ModelOptimizers::SetIn(
    VariableStore& variables, absl::Span<const std::string> weights) const {
  for (int index = -1; index < static_cast<int>(by_layer_.size()); ++index) {
    std::vector<std::string> names;
    for (const std::string& weight : weights) {
      if (IndexOf(weight) == index) names.push_back(weight);
    }
    const Optimizer& optimizer =
        index < 0 ? default_ : by_layer_[index].optimizer;
    const absl::Status status = variables.SetOptimizerOf(names, optimizer);
    if (index >= 0 && absl::IsInvalidArgument(status)) {
      return InvalidPrefix(by_layer_[index].prefix,
                           absl::StrCat("has ", status.message()));
    }
    RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace muster
