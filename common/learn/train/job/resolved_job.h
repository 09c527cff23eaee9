#ifndef COMMON_LEARN_TRAIN_JOB_RESOLVED_JOB_H_
#define COMMON_LEARN_TRAIN_JOB_RESOLVED_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/job/job_keras_file.h"
#include "common/learn/train/job/job_settings.h"

namespace muster {

namespace proto {
class TrainingJob;
}  // namespace proto

struct CanonicalJob;

// The data of a job; what it does not name is unset.
struct JobDatasets {
  Dataset train;
  std::optional<Dataset> validation;
  std::optional<Dataset> test;
};

// A job as a process runs it: its text is read once, its model is built once
// and its data are opened once. So what is checked, what synchronous workers
// compare, and what is trained are the same.
//
// Not thread-safe.
class ResolvedJob {
 public:
  // Reads a job file, builds its model and checks all of it that can be checked
  // without its data. `settings` are --set name=value; `run_dir` is what
  // ${run_dir} stands for.
  //   kInvalidArgument  the file is empty or invalid; begins with "file:" or
  //                     "file:line:column:" and names the field
  //   kNotFound         there is no such file, or not the file of Keras that is
  //                     its model
  //   others            as ReadSmallFile() and ReadJobKerasFile()
  static absl::StatusOr<ResolvedJob> FromFile(const std::string& path,
                                              const JobSettings& settings = {},
                                              const std::string& run_dir = "");

  // The same for a job that comes from no file.
  //   kInvalidArgument  the job is invalid; names the field
  //   others            as ReadJobKerasFile()
  static absl::StatusOr<ResolvedJob> FromProto(const proto::TrainingJob& job);

  ~ResolvedJob();
  ResolvedJob(ResolvedJob&&) noexcept;
  ResolvedJob& operator=(ResolvedJob&&) noexcept;

  const proto::TrainingJob& job() const;
  const std::string& file() const;     // Empty if it comes from no file.
  const std::string& run_dir() const;  // Where results go.
  // The part that must be equal on all synchronous workers. For a file of
  // Keras, its SHA-256 in place of its name.
  const CanonicalJob& agreed() const;
  // The layers. A model of them can be compiled once.
  const LayerPtr& layer() const;
  // The file of Keras that is the job's model; null if it is not one.
  const JobKerasFile* keras_file() const;
  // The job's options for Compile(), with the settings of its file of Keras for
  // what it leaves out.
  absl::StatusOr<CompileOptions> BuildCompileOptions(uint64_t seed) const;

  int64_t batch_size() const;  // Global.

  // Opens the data. Further calls change nothing.
  //   kInvalidArgument, kNotFound, others  as JobSource::Open(), for the field
  //                                        that it names
  absl::Status OpenData();

  // Returns a line for each part of the opened data that has columns which are
  // not used: not features, labels or ids.
  std::vector<std::string> UnusedColumns() const;

  // The data in batches, for a run with this seed. Opens them if need be.
  //   as OpenData()
  absl::StatusOr<JobDatasets> Datasets(uint64_t seed);

  // The same data in the order of the sources, each example once and nothing
  // cached in files: to look at them.
  //   as OpenData()
  absl::StatusOr<JobDatasets> DatasetsInOrder();

  // The training data to which layers are adapted: in batches, in the order of
  // the source, each example once. The same for all seeds.
  //   as OpenData()
  absl::StatusOr<Dataset> DataToAdapt();

 private:
  struct State;
  explicit ResolvedJob(std::unique_ptr<State> state);
  void SetAgreed(CanonicalJob agreed);

  std::unique_ptr<State> state_;
};

// Checks a job as ResolvedJob::FromProto() does.
absl::Status ValidateJob(const proto::TrainingJob& job);

// Reads a job file as ResolvedJob::FromFile(), for programs that change the job
// before they run it.
absl::StatusOr<proto::TrainingJob> ReadJobFile(const std::string& path,
                                               const JobSettings& settings = {},
                                               const std::string& run_dir = "");

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_RESOLVED_JOB_H_
