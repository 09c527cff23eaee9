#ifndef COMMON_LEARN_TRAIN_EVALUATOR_EXPORTER_H_
#define COMMON_LEARN_TRAIN_EVALUATOR_EXPORTER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/io/checkpoint/disk.h"
#include "common/learn/train/history.h"
#include "common/learn/train/model.h"

namespace muster {

enum class ExportWhen {
  kBest,    // Every time a checkpoint is better than all before.
  kLatest,  // Every time a checkpoint has been scored.
  kFinal,   // When training is over.
};

struct ExporterOptions {
  // Also the name of its folder: <export_dir>/<name>/ckpt-<number>.
  std::string name;
  ExportWhen when = ExportWhen::kLatest;
  // The oldest beyond so many are removed. None: all stay.
  std::optional<int> exports_to_keep = 5;
  // kBest: whether a checkpoint with these values is better than one with those
  // of `best`. Null: the loss is less.
  std::function<bool(const Logs& best, const Logs& current)> is_better;
};

// Keeps weights that were worth it, apart from the checkpoints of training,
// which come and go: in a folder of checkpoints of values alone, numbered as
// those that they are from, for Model::LoadWeights().
//
// Equivalent to: tf.estimator.BestExporter, LatestExporter and FinalExporter.
// Not thread-safe.
class Exporter {
 public:
  // `export_dir` need not exist. `disk` is borrowed.
  //   kInvalidArgument  an option makes no sense; names it
  static absl::StatusOr<Exporter> Create(ExporterOptions options,
                                         std::string export_dir, Disk* disk);

  // The checkpoint of this number, with whose values `model` is now, has been
  // scored. Whether it was exported.
  absl::StatusOr<bool> Offer(Model& model, int64_t number, const Logs& logs,
                             bool is_final);

  const std::string& name() const { return options_.name; }
  ExportWhen when() const { return options_.when; }
  // The values of the best one so far, over restarts; kBest only.
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
