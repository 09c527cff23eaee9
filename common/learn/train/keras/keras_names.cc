#include "common/learn/train/keras/keras_names.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/keras/keras_argument_reader.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {
namespace {

// Keras has some classes under a second name, which files may have, too.
std::string WithoutAlias(absl::string_view class_name) {
  const std::string short_names = absl::StrReplaceAll(
      class_name, {{"Convolution", "Conv"}, {"AvgPool", "AveragePool"}});
  return absl::StrReplaceAll(
      short_names, {{"Pool1D", "Pooling1D"},
                    {"Pool2D", "Pooling2D"},
                    {"Pool3D", "Pooling3D"},
                    {"GroupedQueryAttention", "GroupQueryAttention"}});
}

}  // namespace

const LayerKind* FindKerasLayerKind(absl::string_view class_name) {
  // The class is what a layer of the kind says of itself.
  static const auto& kKinds = *[] {
    auto* const kinds = new absl::flat_hash_map<std::string, const LayerKind*>;
    for (const LayerKind& kind : kLayerKinds) {
      kinds->emplace(kind.make()->kind(), &kind);
    }
    return kinds;
  }();
  const auto found = kKinds.find(WithoutAlias(class_name));
  return found == kKinds.end() ? nullptr : found->second;
}

absl::Status UnknownKerasLayer(absl::string_view place,
                               absl::string_view class_name) {
  std::vector<std::string> classes;
  for (const LayerKind& kind : kLayerKinds) {
    classes.push_back(kind.make()->kind());
  }
  return UnknownKerasName(place, "layer", class_name,
                          {classes.begin(), classes.end()});
}

namespace {

// Makes an entry of a table with Keras' defaults.
template <typename Made, typename Kind>
absl::StatusOr<Made> MakeDefault(absl::string_view place, const Kind& kind) {
  const KerasJson no_arguments = KerasJson::object();
  KerasArgumentReader reader(place, no_arguments);
  Made made = kind.make(reader);
  RETURN_IF_ERROR(reader.Finish());
  return made;
}

absl::Status LookUp(absl::string_view place, Loss* loss) {
  if (!loss->is_name()) return absl::OkStatus();
  ASSIGN_OR_RETURN(*loss, LossNamed(place, loss->name()));
  return absl::OkStatus();
}

absl::Status LookUp(absl::string_view place, std::vector<Metric>* metrics) {
  for (Metric& metric : *metrics) {
    if (!metric.is_name()) continue;
    ASSIGN_OR_RETURN(metric, MetricNamed(place, metric.name()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Loss> LossNamed(absl::string_view place,
                               absl::string_view name) {
  const std::string canonical = CanonicalKerasName(name);
  if (canonical == "crossentropy" || canonical == "ce") return Crossentropy();
  const LossKind* const kind = FindKerasKind(kLossKinds, name);
  if (kind != nullptr) return MakeDefault<Loss>(place, *kind);
  return UnknownKerasName(place, "loss", name, NamesOfKinds(kLossKinds));
}

absl::StatusOr<Metric> MetricNamed(absl::string_view place,
                                   absl::string_view name) {
  const absl::string_view kind_name = name == "acc" ? "accuracy" : name;
  if (const MetricKind* const kind = FindKerasKind(kMetricKinds, kind_name);
      kind != nullptr) {
    ASSIGN_OR_RETURN(const Metric metric, MakeDefault<Metric>(place, *kind));
    return metric.Named(name);
  }
  if (const LossKind* const kind = FindKerasKind(kLossKinds, kind_name);
      kind != nullptr) {
    ASSIGN_OR_RETURN(const Loss loss, MakeDefault<Loss>(place, *kind));
    return Metric(loss).Named(name);
  }
  return UnknownKerasName(place, "metric", name, NamesOfKinds(kMetricKinds));
}

absl::Status LookUpNames(CompileOptions* options) {
  RETURN_IF_ERROR(LookUp("Compile, loss", &options->loss));
  for (Loss& loss : options->losses) {
    RETURN_IF_ERROR(LookUp("Compile, losses", &loss));
  }
  RETURN_IF_ERROR(LookUp("Compile, metrics", &options->metrics));
  RETURN_IF_ERROR(
      LookUp("Compile, weighted_metrics", &options->weighted_metrics));
  for (std::vector<Metric>& metrics : options->output_metrics) {
    RETURN_IF_ERROR(LookUp("Compile, output_metrics", &metrics));
  }
  for (std::vector<Metric>& metrics : options->weighted_output_metrics) {
    RETURN_IF_ERROR(LookUp("Compile, weighted_output_metrics", &metrics));
  }
  return absl::OkStatus();
}

}  // namespace muster
