#ifndef COMMON_LEARN_TRAIN_EVALUATOR_EXPORTER_H_
#define COMMON_LEARN_TRAIN_EVALUATOR_EXPORTER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/model.h"

namespace muster {

enum class ExportWhen {
  kBest,    // When a checkpoint is better than all before.
  kLatest,  // After each evaluation.
  kFinal,   // When training has ended.
};

struct ExporterOptions {
  // Also the name of the folder: <export_dir>/<name>/ckpt-<number>.
  std::string name;
  ExportWhen when = ExportWhen::kLatest;
  // The number of exports to keep; older ones are removed. None: all are kept.
  std::optional<int> exports_to_keep = 5;
  // kBest: returns true if a checkpoint with the values `current` is better
  // than one with `best`. Null: compares the loss.
  std::function<bool(const Logs& best, const Logs& current)> is_better;
};

// Exports the weights of selected checkpoints into a separate folder, because
// training removes old checkpoints. The exports contain weights only, keep the
// number of their checkpoint, and can be read by Model::LoadWeights().
//
// Equivalent to: tf.estimator.BestExporter, LatestExporter and FinalExporter.
// Not thread-safe.
class Exporter {
 public:
  // `export_dir` is created if it does not exist. `disk` is borrowed.
  //   kInvalidArgument  an option is invalid; the message names it
  static absl::StatusOr<Exporter> Create(ExporterOptions options,
                                         std::string export_dir, Disk* disk);

  // Called after the evaluation of checkpoint `number`, whose weights `model`
  // has. Returns true if the checkpoint was exported.
  absl::StatusOr<bool> Offer(Model& model, int64_t number, const Logs& logs,
                             bool is_final);

  const std::string& name() const { return options_.name; }
  ExportWhen when() const { return options_.when; }
  // kBest only: the values of the best checkpoint so far, including those
  // before a restart.
  const std::optional<Logs>& best() const { return best_; }
  void set_best(std::optional<Logs> best) { best_ = std::move(best); }

 private:
  Exporter(ExporterOptions options, std::string folder, Disk* disk)
      : options_(std::move(options)), folder_(std::move(folder)), disk_(disk) {}

  bool IsWorthIt(const Logs& logs, bool is_final) const;
  absl::Status Write(Model& model, int64_t number) const;

  ExporterOptions options_;
  std::string folder_;
  Disk* disk_;
  std::optional<Logs> best_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EVALUATOR_EXPORTER_H_
