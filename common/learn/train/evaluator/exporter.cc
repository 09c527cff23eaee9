#include "common/learn/train/evaluator/exporter.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/learn/nn/weight.h"

namespace muster {
namespace {

bool HasLessLoss(const Logs& best, const Logs& current) {
  const auto old_loss = best.find("loss");
  const auto new_loss = current.find("loss");
  return new_loss != current.end() &&
         (old_loss == best.end() || new_loss->second < old_loss->second);
}

}  // namespace

absl::StatusOr<Exporter> Exporter::Create(ExporterOptions options,
                                          std::string export_dir, Disk* disk) {
  const bool is_name = !options.name.empty() &&
                       options.name.find('/') == std::string::npos &&
                       options.name != "." && options.name != "..";
  if (!is_name) {
    return absl::InvalidArgumentError(
        absl::StrCat("an exporter's name must be that of a folder, got \"",
                     options.name, "\""));
  }
  if (options.exports_to_keep.has_value() && *options.exports_to_keep < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "exporter ", options.name, ": exports_to_keep must be at least 1, got ",
        *options.exports_to_keep));
  }
  if (options.is_better == nullptr) options.is_better = HasLessLoss;
  std::string folder = JoinPath(export_dir, options.name);
  return Exporter(std::move(options), std::move(folder), disk);
}

absl::StatusOr<bool> Exporter::Offer(Model& model, int64_t number,
                                     const Logs& logs, bool is_final) {
  if (!IsWorthIt(logs, is_final)) return false;
  RETURN_IF_ERROR(Write(model, number));
  if (options_.when == ExportWhen::kBest) best_ = logs;
  return true;
}

bool Exporter::IsWorthIt(const Logs& logs, bool is_final) const {
  switch (options_.when) {
    case ExportWhen::kBest:
      return !best_.has_value() || options_.is_better(*best_, logs);
    case ExportWhen::kLatest:
      return true;
    case ExportWhen::kFinal:
      return is_final;
  }
  return false;
}

absl::Status Exporter::Write(Model& model, int64_t number) const {
  ASSIGN_OR_RETURN(const std::vector<Tensor> values, model.GetWeights());
  const std::vector<Weight> weights = model.weights();
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointManager> manager,
                   CheckpointManager::Create(
                       {.folder = folder_,
                        .checkpoint_count_max = options_.exports_to_keep,
                        .disk = disk_}));
  const auto write = [&](TensorBundleWriter* writer) -> absl::Status {
    for (size_t i = 0; i < weights.size(); ++i) {
      RETURN_IF_ERROR(
          writer->Add(VariableValueKey(weights[i].name()), values[i]));
    }
    return absl::OkStatus();
  };
  return manager->Save(write, number).status();
}

}  // namespace muster
