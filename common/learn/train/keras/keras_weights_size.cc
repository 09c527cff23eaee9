#include "common/learn/train/keras/keras_weights_size.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/keras_config.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/io/keras/keras_archive.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/keras/keras_differences.h"
#include "common/learn/train/keras/keras_model_reader.h"
#include "common/learn/train/keras/keras_object.h"
#include "common/learn/train/keras/keras_variables.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

// Slots of a variable, with an average and a sum of gradients, where the config
// does not say the optimizer.
constexpr int64_t kSlotCountMax = 6;
// What surrounds an array: groups, names, headers.
constexpr int64_t kArrayAllowanceBytes = int64_t{16} << 10;
constexpr int64_t kAllowanceBytes = int64_t{1} << 20;
// No file is larger than what fits a double exactly.
constexpr double kSizeBytesMax = 9e15;

// Returns the most slots that a variable has.
int64_t SlotCount(const KerasJson& model) {
  const KerasJson& optimizer =
      FindMember(FindMember(model, "compile_config"), "optimizer");
  if (!optimizer.is_object()) return kSlotCountMax;
  const auto read = OptimizerFromKerasConfig(optimizer.dump());
  if (!read.ok()) return kSlotCountMax;
  const auto rule = UpdateRule::Create(*read);
  if (!rule.ok()) return kSlotCountMax;
  return static_cast<int64_t>((*rule)->slots().size());
}

int64_t CountLayers(const Layer& layer) {
  int64_t count = 1;
  for (const LayerPtr& inner : layer.layers()) count += CountLayers(*inner);
  return count;
}

// Removes the argument `training` from calls: sizes do not depend on it, and
// the reader of models warns of it.
void DropTrainingArguments(KerasJson* json) {
  if (!json->is_structured()) return;
  const auto kwargs = json->is_object() ? json->find("kwargs") : json->end();
  if (kwargs != json->end() && kwargs->is_object()) kwargs->erase("training");
  for (KerasJson& inner : *json) DropTrainingArguments(&inner);
}

// Null unless it can be built.
LayerPtr BuiltModel(const KerasJson& config, const KerasArchive& archive) {
  absl::StatusOr<LayerPtr> model = LayersFromKeras(config);
  if (!model.ok() || (*model)->input_types().empty()) return nullptr;
  if (!AdoptKerasStateSizes(**model, archive.assets).ok()) return nullptr;
  (*model)->SetPath("");
  if (!TraceForward(*model, (*model)->input_types()).ok()) return nullptr;
  return *std::move(model);
}

}  // namespace

std::optional<int64_t> KerasWeightsSizeBytesMax(const KerasArchive& archive) {
  const absl::StatusOr<KerasJson> metadata =
      ParseKerasJson("metadata.json", archive.metadata);
  absl::StatusOr<KerasJson> config =
      ParseKerasJson("config.json", archive.config);
  if (!metadata.ok() || !config.ok()) return std::nullopt;
  UpdateKerasConfig(ParseKerasVersion(TextMember(*metadata, "keras_version"),
                                      /*otherwise=*/{3, 0}),
                    &*config);
  DropTrainingArguments(&*config);
  const LayerPtr model = BuiltModel(*config, archive);
  if (model == nullptr) return std::nullopt;
  const int64_t copy_count = 1 + SlotCount(*config);
  double value_bytes = 0;
  int64_t array_count = CountLayers(*model);
  for (const Weight& weight : model->weights()) {
    // Keras keeps weights of 16 bits in 32.
    const size_t element_bytes =
        std::max<size_t>(SizeOf(weight.handle().type.dtype), sizeof(float));
    double count = 1;
    for (const int64_t extent : weight.handle().type.shape.dims()) {
      count *= static_cast<double>(extent);
    }
    value_bytes += count * static_cast<double>(element_bytes);
    ++array_count;
  }
  const double all =
      value_bytes * static_cast<double>(copy_count) +
      static_cast<double>(array_count * copy_count) * kArrayAllowanceBytes +
      kAllowanceBytes;
  return static_cast<int64_t>(std::min(all, kSizeBytesMax));
}

}  // namespace muster
