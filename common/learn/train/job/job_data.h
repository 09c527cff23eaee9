#ifndef COMMON_LEARN_TRAIN_JOB_JOB_DATA_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_DATA_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/train/job/job_csv.h"
#include "proto/training_job.pb.h"

namespace muster {

// Returns the inputs of a model, by which it takes columns of a table; empty
// for one that does not say what its inputs are.
std::vector<ColumnInput> ColumnInputsOf(const Layer& model);

// Examples {x, y} that a job file describes. Opened once, before the seed of
// the run is known; the batches of all seeds share what was opened.
//
// A value, cheap to copy. Thread-safe: immutable.
class JobSource {
 public:
  // Opens the source of `data`. `field` is what errors call it: "train". With a
  // `validation_split` above 0, that share of the examples, the last ones that
  // `skip` and `take` leave, is set apart; a source that does not say how many
  // examples it has is read once to count them. Columns of
  // CSV files go to `inputs` as OpenJobCsv() says. Features of TFRecord files
  // go to the inputs of their names if all have such names, and otherwise by
  // position.
  //   kInvalidArgument  no source, or a number out of range; names the field.
  //                     As TrainingExampleCount(), or it is unknown which
  //                     examples are the last
  //   kNotFound         a pattern that no file matches
  //   others            from opening files
  static absl::StatusOr<JobSource> Open(
      const proto::JobData& data, absl::string_view field, DType label_type,
      double validation_split = 0, const std::vector<ColumnInput>& inputs = {});

  // Opens inputs {x} to predict for, {x, id} if `csv.id` is set. Labels are
  // left out where the source can do without, and need not be there; what
  // shuffles is ignored.
  //   as Open()
  static absl::StatusOr<JobSource> OpenInputs(
      const proto::JobData& data, absl::string_view field,
      const std::vector<ColumnInput>& inputs = {});

  // The examples, without those set apart, as `data` says: cached, shuffled, in
  // batches, repeated.
  //   kInvalidArgument  a number out of range, or columns that are not the
  //                     model's inputs; names the field
  absl::StatusOr<Dataset> Batches(int64_t batch_size, uint64_t seed) const;

  // Those set apart, or all without a validation_split, in batches in the order
  // of the source, each once.
  absl::StatusOr<Dataset> BatchesInOrder(int64_t batch_size,
                                         uint64_t seed) const;

  // The examples that Batches() has, in the order of the source, each once.
  absl::StatusOr<Dataset> TrainingInOrder(int64_t batch_size) const;

  // The columns of a CSV file that are neither features nor labels nor ids.
  const std::vector<std::string>& unused_columns() const {
    return unused_columns_;
  }

 private:
  JobSource() = default;
  void UseCsv(JobCsv csv);
  absl::StatusOr<Dataset> InOrder(Dataset examples, int64_t batch_size,
                                  uint64_t seed) const;
  // With components in the order of input_names_; errors name the field.
  absl::StatusOr<Dataset> Ordered(absl::StatusOr<Dataset> batches) const;

  proto::JobData data_;
  std::string field_;
  std::vector<std::string> input_names_;
  std::vector<std::string> unused_columns_;
  // With what `skip` and `take` leave.
  std::function<absl::StatusOr<Dataset>(uint64_t seed)> examples_;
  // With a validation_split: how many come before those set apart.
  std::optional<int64_t> train_count_;
};

// How the data of a job are divided among workers.
//   kInvalidArgument  a field is out of range; names it
absl::StatusOr<InputOptions> BuildJobInput(const proto::JobInput& input);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_DATA_H_
